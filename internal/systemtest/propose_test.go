package systemtest

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/systemtest/forgetest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// noForgePolicy grants what the author of a change needs. forgePolicy grants also gh and glab.
const (
	noForgePolicy = `version: 1
tiers: {1: {anything: true}, 2: {read: ["**"], write: ["."], review: {paths: ["**"]}}, 3: {}}
programs:
  "sed, git, docker": {tier: 2, any_option: true, args: "TEXT*"}
`
	forgePolicy = noForgePolicy + `  "gh, glab": {tier: 2, any_option: true, args: "TEXT*"}
`
)

// newForgeRepository is like newRemoteRepository. Git fetches from a forge, and pushes to the remote in a directory.
func newForgeRepository(t *testing.T, address string) (live, remote string) {
	t.Helper()
	live, remote = newRemoteRepository(t)
	gitIn(t, live, "remote", "set-url", "origin", address)
	gitIn(t, live, "remote", "set-url", "--push", "origin", remote)
	return live, remote
}

// forgeEnvironment returns the settings for a chain in a repository at a forge.
func forgeEnvironment(t *testing.T, at forgetest.Forge, live, mode, policy string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	path := strings.Replace(pathWithDocker(t), "PATH=", "PATH="+at.Bin+":", 1)
	dirs := filepath.SplitList(strings.TrimPrefix(path, "PATH="))[:2] // those of the forge's programs and of docker
	require.NoError(t, os.WriteFile(file, []byte(policy+"directories: [/usr/bin, /bin, "+strings.Join(dirs, ", ")+"]\n"), 0o600))
	return []string{
		"CLAUDEOPS_WORK_DIR=" + live, "CLAUDEOPS_REVIEW_CHANGES=" + mode, "CLAUDEOPS_POLICY_FILE=" + file, path,
		"CLAUDEOPS_WEB_URL=https://ops.example.org", patient,
	}
}

// correctedAtOnce returns the turns of an author whose change the reviewer approves.
func correctedAtOnce() claudesim.Scenario {
	noted := ready
	noted.Findings = []review.Finding{{
		Fingerprint: "old-image", Priority: review.P2, Action: review.AutoFix, File: "compose.yaml", Line: 3, Text: "pin the image, cc @everyone",
	}}
	return claudesim.Play(concluding("haiku", asksFor(2)), reviews(noted), corrects(""))
}

// TestPullRequest lets a chain propose an approved commit at each forge: pushed, with verdict, previews and a link to
// the chain.
func TestPullRequest(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	newest := simtest.NewestVersions(t)
	for name, c := range map[string]struct {
		start                func(*testing.T, claudesim.Version, claudesim.Scenario) backend
		program, remote, url string
	}{
		"gh":      {playedClaude, "gh", "git@github.com:acme/infra.git", "https://github.com/acme/infra/pull/1"},
		"gh/real": {realClaude, "gh", "git@github.com:acme/infra.git", "https://github.com/acme/infra/pull/1"},
		"glab":    {playedClaude, "glab", "https://gitlab.com/acme/infra.git", "https://gitlab.com/acme/infra/-/merge_requests/1"},
	} {
		backend := c.start(t, newest[len(newest)-1], correctedAtOnce())
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, remote := newForgeRepository(t, c.remote)
			at := forgetest.Install(t, c.program)
			s := startSite(t, temporalServer, environment(t, "",
				append(backend.environ, forgeEnvironment(t, at, live, "required", forgePolicy)...)...))
			chain, err := s.finish(s.start(nil))
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			require.Len(t, chain.Reviews, 1, "%+v", chain.Sessions)
			done := chain.Reviews[0]
			require.Equal(t, []any{true, remote, c.url}, []any{done.Approved, done.Pushed, done.PullRequest}, reviewEvents(chain))
			require.Equal(t, done.Commit+" refs/heads/"+done.Branch, pushedTo(t, remote))
			all := at.PullRequests(t)
			require.Len(t, all, 1)
			require.Equal(t, []string{done.Branch, "main", "web: the right port"}, []string{all[0].Branch, all[0].Base, all[0].Title})
			for _, part := range []string{
				asksFor(2).Summary, "Verdict: `ready`", ready.Summary, "> - P2 old-image (compose.yaml:3): pin the image", "Result: `passed`",
				"> $ docker compose -f ./compose.yaml config", "> rendered compose -f ./compose.yaml config with key none", "`" + done.Commit + "`",
				"[`" + chain.ID + "`](https://ops.example.org/chains/" + chain.ID + ")",
			} {
				require.Contains(t, all[0].Body, part)
			}
			requireUntouched(t, live)
			requireRecorded(t, s, chain)
		})
	}
}

// TestPullRequestIsNotOpened checks that a commit is pushed all the same if no pull request can be opened.
func TestPullRequestIsNotOpened(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for name, c := range map[string]struct {
		policy string
		remote string
		fail   forgetest.Failure
		hosts  []string
		says   string
	}{
		"refused": {
			forgePolicy, "https://github.com/acme/infra",
			forgetest.Failure{Method: http.MethodPost, Path: "/pulls", Status: http.StatusForbidden},
			[]string{"github.com"},
			"Forbidden (HTTP 403)",
		},
		"no login":      {forgePolicy, "https://github.com/acme/infra", forgetest.Failure{}, nil, "exit code 4"},
		"not granted":   {noForgePolicy, "https://github.com/acme/infra", forgetest.Failure{}, []string{"github.com"}, ""},
		"unknown host":  {forgePolicy, "https://code.example.org/acme/infra", forgetest.Failure{}, []string{"github.com"}, ""},
		"no repository": {forgePolicy, "/srv/infra.git", forgetest.Failure{}, []string{"github.com"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, remote := newForgeRepository(t, c.remote)
			at := forgetest.Install(t, "gh")
			at.Login(t, c.hosts...)
			at.Fail(t, c.fail)
			s := startSite(t, temporalServer, environment(t, simtest.Install(t, correctedAtOnce()),
				forgeEnvironment(t, at, live, "required", c.policy)...))
			chain, err := s.finish(s.start(nil))
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			require.Len(t, chain.Reviews, 1, "%+v", chain.Sessions)
			done := chain.Reviews[0]
			require.Equal(t, []any{true, remote, ""}, []any{done.Approved, done.Pushed, done.PullRequest})
			require.Equal(t, done.Commit+" refs/heads/"+done.Branch, pushedTo(t, remote))
			require.Empty(t, at.PullRequests(t))
			said := strings.Join(reviewEvents(chain), "\n")
			if c.says == "" {
				require.NotContains(t, said, "pull request")
			} else {
				require.Contains(t, said, "is approved and pushed, and its pull request could not be written: ")
				require.Contains(t, said, c.says)
			}
			requireRecorded(t, s, chain)
		})
	}
}

// TestAdvisoryPullRequest lets an agent push and open a pull request itself. The verdict becomes a comment on it, once.
func TestAdvisoryPullRequest(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	live, remote := newForgeRepository(t, "https://github.com/acme/infra")
	at := forgetest.Install(t, "gh")
	s := startSite(t, temporalServer, environment(t, simtest.Install(t, proposing()),
		forgeEnvironment(t, at, live, "advisory", forgePolicy)...))
	chain, err := s.finish(s.start(nil))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	requireCommented(t, at, chain, remote)
	requireRecorded(t, s, chain)
}

// proposing returns the turns of an author that pushes its change and opens a pull request.
func proposing() claudesim.Scenario {
	return claudesim.Play(concluding("haiku", asksFor(2)), reviews(ready), claudesim.On(claudesim.Match{Model: "sonnet"},
		claudesim.Bash("sed -i s/8081/8080/ compose.yaml && git commit --quiet --all --message 'web: the right port'"),
		claudesim.Bash("git push origin $(git branch --show-current)"),
		claudesim.Bash(`gh pr create --head "$(git branch --show-current)" --title "by the author" --body "trust me"`),
		claudesim.Conclude(resolved())))
}

// requireCommented checks that the author's pull request has one comment with the verdict.
func requireCommented(t *testing.T, at forgetest.Forge, chain escalation.Chain, remote string) {
	t.Helper()
	done := chain.Reviews[0]
	require.Equal(t, []any{"", "https://github.com/acme/infra/pull/1"}, []any{done.Pushed, done.PullRequest}, "%v", reviewEvents(chain))
	require.Equal(t, done.Commit, gitIn(t, remote, "rev-parse", done.Branch))
	all := at.PullRequests(t)
	require.Len(t, all, 1)
	require.Equal(t, []string{"by the author", "trust me"}, []string{all[0].Title, all[0].Body})
	require.Len(t, all[0].Comments, 1)
	require.Contains(t, all[0].Comments[0], "Verdict: `ready`")
	require.Contains(t, all[0].Comments[0], done.Commit)
}

// TestFaultPullRequestKilledAt kills the worker after it has written a pull request or a comment, and before Temporal
// knows. The next worker writes no second one.
func TestFaultPullRequestKilledAt(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, scenario := range map[string]claudesim.Scenario{"required": correctedAtOnce(), "advisory": proposing()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, remote := newForgeRepository(t, "https://github.com/acme/infra")
			at := forgetest.Install(t, "gh")
			once := filepath.Join(t.TempDir(), "once")
			require.NoError(t, os.WriteFile(once, nil, 0o600))
			environ := environment(t, simtest.Install(t, scenario), append(forgeEnvironment(t, at, live, name, forgePolicy),
				"CLAUDEOPS_TASK_QUEUE=forge-"+name, "TEMPORAL_ADDRESS="+address,
				pointVariable+"="+after("ProposeChange", 1).String(), onceVariable+"="+once)...)
			cfg, err := config.Load(environ)
			require.NoError(t, err)
			s := &site{t: t, cfg: cfg, client: c}
			run := s.startAs("forge-"+name, nil)
			first := startRole(t, "worker", nil, environ...)
			require.Error(t, first.Wait(), "it kills itself")
			require.NoFileExists(t, once)
			require.Len(t, at.PullRequests(t), 1)
			startRole(t, "worker", nil, environ...)
			chain, err := s.finish(run)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			require.Equal(t, "https://github.com/acme/infra/pull/1", chain.Reviews[0].PullRequest)
			if name == "advisory" {
				requireCommented(t, at, chain, remote)
				return
			}
			all := at.PullRequests(t)
			require.Len(t, all, 1)
			require.Empty(t, all[0].Comments)
			require.Contains(t, all[0].Body, "Verdict: `ready`")
		})
	}
}
