package forge_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/change/forge"
	"github.com/claudeops/claudeops/internal/systemtest/forgetest"
)

// newClient returns a client for a project at a stand-in.
func newClient(t *testing.T, project forge.Project) (forge.Client, forgetest.Forge) {
	t.Helper()
	at := forgetest.Install(t, string(project.Program))
	return forge.NewClient(project, func(ctx context.Context, args []string, input []byte) (forge.Answer, error) {
		command := exec.CommandContext(ctx, filepath.Join(at.Bin, string(project.Program)), args...)
		var stdout, stderr bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &stdout, &stderr
		err := command.Run()
		if _, failed := errors.AsType[*exec.ExitError](err); failed {
			err = nil
		}
		return forge.Answer{Code: command.ProcessState.ExitCode(), Output: stdout.String(), Errors: stderr.String()}, err
	}), at
}

// projects returns a project at each forge.
func projects() []forge.Project {
	return []forge.Project{
		{Program: forge.GitHub, Host: "github.com", Path: "acme/infra"},
		{Program: forge.GitLab, Host: "gitlab.com", Path: "acme/infra"},
	}
}

const branch = "claudeops/chain-1"

// TestPropose opens a pull request. A repetition with other text replaces the text.
func TestPropose(t *testing.T) {
	t.Parallel()
	for _, project := range projects() {
		t.Run(string(project.Program), func(t *testing.T) {
			t.Parallel()
			client, at := newClient(t, project)
			at.Add(t, forgetest.PullRequest{Branch: branch, Fork: true})
			at.Add(t, forgetest.PullRequest{Branch: branch, Closed: true})
			at.Add(t, forgetest.PullRequest{Branch: "claudeops/chain-12"})
			opened, err := client.Propose(t.Context(), forge.Proposal{Branch: branch, Title: "web: the port", Body: "first\n"})
			require.NoError(t, err)
			require.Equal(t, 4, opened.Number)
			require.True(t, strings.HasPrefix(opened.URL, "https://"+project.Host+"/acme/infra/"), opened.URL)
			again, err := client.Propose(t.Context(), forge.Proposal{Branch: branch, Title: "another", Body: "second"})
			require.NoError(t, err)
			require.Equal(t, opened, again)
			all := at.PullRequests(t)
			require.Len(t, all, 4)
			require.Equal(t, forgetest.PullRequest{Number: 4, Branch: branch, Base: "main", Title: "web: the port", Body: "second"}, all[3])
			for _, call := range at.Calls(t) {
				require.Equal(t, []string{"api", "--hostname", project.Host, "--method"}, call.Args[:4])
				require.NotContains(t, strings.Join(call.Args, " "), "second", "texts are not among the arguments, which everybody on the host can see")
			}
		})
	}
}

// TestProposeIntoABranch checks that the branch of the working directory is the base if it is known.
func TestProposeIntoABranch(t *testing.T) {
	t.Parallel()
	project := projects()[0]
	project.Base = "production"
	client, at := newClient(t, project)
	_, err := client.Propose(t.Context(), forge.Proposal{Branch: branch, Title: "t"})
	require.NoError(t, err)
	require.Equal(t, "production", at.PullRequests(t)[0].Base)
}

// TestProposeAfterALostAnswer repeats a call whose pull request was opened, and whose answer was lost.
func TestProposeAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for _, project := range projects() {
		client, at := newClient(t, project)
		at.Fail(t, forgetest.Failure{Method: http.MethodPost, Status: http.StatusBadGateway, Times: 1, After: true})
		proposal := forge.Proposal{Branch: branch, Title: "t", Body: "b"}
		_, err := client.Propose(t.Context(), proposal)
		require.ErrorContains(t, err, "Bad Gateway")
		_, refused := errors.AsType[*forge.RefusedError](err)
		require.False(t, refused, "another attempt may succeed")
		_, err = client.Propose(t.Context(), proposal)
		require.NoError(t, err)
		require.Len(t, at.PullRequests(t), 1)
	}
}

// TestRefused checks which failures are final.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, project := range projects() {
		for status, final := range map[int]bool{
			http.StatusForbidden: true, http.StatusNotFound: true, http.StatusUnprocessableEntity: true,
			http.StatusTooManyRequests: false, http.StatusRequestTimeout: false, http.StatusInternalServerError: false,
		} {
			client, at := newClient(t, project)
			at.Fail(t, forgetest.Failure{Method: http.MethodPost, Status: status})
			_, err := client.Propose(t.Context(), forge.Proposal{Branch: branch, Title: "t"})
			_, refused := errors.AsType[*forge.RefusedError](err)
			require.Equal(t, final, refused, "%d: %v", status, err)
			require.ErrorContains(t, err, http.StatusText(status))
			require.Empty(t, at.PullRequests(t))
		}
		client, at := newClient(t, project)
		at.Login(t)
		_, err := client.Propose(t.Context(), forge.Proposal{Branch: branch, Title: "t"})
		_, refused := errors.AsType[*forge.RefusedError](err)
		require.True(t, refused, "%v", err)
	}
}

// TestLimited checks that a limit of the forge is no refusal, with the texts of GitHub's limits
// (docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
func TestLimited(t *testing.T) {
	t.Parallel()
	for _, project := range projects() {
		for _, failure := range []forgetest.Failure{
			{Status: http.StatusForbidden, Reason: "API rate limit exceeded for user ID 1."},
			{Status: http.StatusForbidden, Reason: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."},
			{Status: http.StatusTooManyRequests},
		} {
			client, at := newClient(t, project)
			failure.Method, failure.Times = http.MethodPost, 1
			at.Fail(t, failure)
			_, err := client.Propose(t.Context(), forge.Proposal{Branch: branch, Title: "t"})
			_, limited := errors.AsType[*forge.LimitedError](err)
			require.True(t, limited, "%v", err)
			_, err = client.Propose(t.Context(), forge.Proposal{Branch: branch, Title: "t"})
			require.NoError(t, err)
			require.Len(t, at.PullRequests(t), 1)
		}
	}
}

// TestComment adds a comment once.
func TestComment(t *testing.T) {
	t.Parallel()
	for _, project := range projects() {
		client, at := newClient(t, project)
		none, err := client.Comment(t.Context(), branch, "<!-- m -->", "<!-- m -->\n\nready")
		require.NoError(t, err)
		require.Nil(t, none)
		at.Add(t, forgetest.PullRequest{Branch: branch, Comments: []string{"nice", "it says <!-- m -->", "<!-- other -->\nx"}})
		for range 2 {
			known, err := client.Comment(t.Context(), branch, "<!-- m -->", "<!-- m -->\n\nready")
			require.NoError(t, err)
			require.Equal(t, 1, known.Number)
		}
		require.Equal(t, []string{"nice", "it says <!-- m -->", "<!-- other -->\nx", "<!-- m -->\n\nready"}, at.PullRequests(t)[0].Comments)
	}
}

// TestAnswers checks that an answer of another form is an error, and no address of another host becomes a link.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"no JSON": "<html>", "no list": `{"message": "moved"}`, "no number": `[{"html_url": "https://github.com/x"}]`,
		"another host": `[{"number": 1, "html_url": "https://github.com.evil.example/x"}]`,
		"a script":     `[{"number": 1, "html_url": "javascript://github.com/%0aalert(1)"}]`,
		"markup":       `[{"number": 1, "html_url": "https://github.com/x)[y](https://evil.example)"}]`,
		"a password":   `[{"number": 1, "html_url": "https://x:y@github.com/x"}]`,
	} {
		client := forge.NewClient(projects()[0], func(context.Context, []string, []byte) (forge.Answer, error) {
			return forge.Answer{Output: answer}, nil
		})
		_, err := client.Comment(t.Context(), branch, "m", "m")
		require.Error(t, err, name)
	}
}
