package guard_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

// TestCommittedSecretsStayInTheRepository runs the git commands that the guard allows, with the words that it gives
// them, in a repository with secret files. What git prints of other files must stay.
func TestCommittedSecretsStayInTheRepository(t *testing.T) {
	t.Parallel()
	place, _ := stage(t)
	work := place.Work[0]
	git := func(words ...string) (string, error) {
		command := exec.Command("git", words...)
		command.Dir = work
		command.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + place.Home, "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@x", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@x",
		}
		output, err := command.CombinedOutput()
		return string(output), err
	}
	do := func(words ...string) string {
		output, err := git(words...)
		require.NoError(t, err, "%q: %s", words, output)
		return strings.TrimSpace(output)
	}
	write := func(name, content string) {
		path := filepath.Join(work, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	do("init", "-q")
	for _, text := range []string{"first", "second"} {
		for _, name := range []string{".env", "sub/.ENV", "secrets/db.txt", "sub/secrets/deep/x", "id_rsa", "vault.yaml", "a.tfstate", "sub/TOKEN.txt"} {
			write(name, "HIDDEN "+text+"\n")
		}
		write("compose.yaml", "services: {jellyfin: {image: shown-"+text+"}}\n")
		write("sub/conf", "shown-"+text+"\n")
		do("add", "-A", "-f")
		do("commit", "-q", "-m", text)
	}
	for _, text := range []string{"third", "removed"} {
		write("notes", text+"\n")
		do("add", "notes")
		do("commit", "-q", "-m", text)
	}
	do("tag", "-a", "-m", "x", "v1", "HEAD~2")
	file, tree := do("rev-parse", "HEAD~2:.env"), do("rev-parse", "HEAD~2:secrets")
	for command, shown := range map[string]string{
		"git show":                     "",
		"git show HEAD~2":              "shown-second",
		"git show v1":                  "shown-second",
		"git show HEAD~2 HEAD~3":       "shown-first",
		"git show HEAD~2:compose.yaml": "shown-second",
		"git show HEAD~3:sub/conf HEAD~2:compose.yaml": "shown-first",
		"git show HEAD~2:sub":                          "conf",
		"git show --stat HEAD~2":                       "compose.yaml",
		"git show HEAD~2 compose.yaml":                 "shown-second",
		"git show HEAD~2 -- compose.yaml":              "shown-second",
		"git show HEAD~2^!":                            "shown-second",
		"git show -p --stat HEAD~2":                    "shown-second",
		"git show " + file:                             "",
		"git show " + file[:10]:                        "",
		"git show " + tree + ":db.txt":                 "",
		"git show HEAD~2:.ENV":                         "",
		"git show HEAD~2^{tree}:.env":                  "denied",
		"git diff HEAD~3 HEAD~2":                       "shown-second",
		"git diff HEAD~3..HEAD~2":                      "shown-second",
		"git diff HEAD~3...HEAD~2":                     "shown-second",
		"git diff HEAD~3 HEAD~2 -- sub":                "shown-second",
		"git diff HEAD~3 sub --stat":                   "sub/conf",
		"git diff HEAD~3":                              "shown-first",
		"git diff --cached HEAD~3":                     "shown-first",
		"git diff HEAD~3:sub HEAD~2:sub":               "denied",
		"git diff " + file + " " + tree + ":db.txt":    "denied",
		"git diff " + file + ".." + file:               "",
		"git log -p":                                   "shown-first",
		"git log -p -2 --all --graph":                  "removed",
		"git log -p -- sub":                            "shown-first",
		"git log -p HEAD~2 compose.yaml":               "shown-first",
		"git log --oneline -S HIDDEN":                  "",
		"git log --oneline -G shown":                   "second",
		"git log --oneline --follow compose.yaml":      "second",
		"git -C sub log -p":                            "shown-first",
		"git -C sub show HEAD~2":                       "shown-second",
		"git grep HIDDEN HEAD~2":                       "",
		"git grep HIDDEN " + tree:                      "",
		"git grep HIDDEN HEAD~2:sub":                   "",
		"git grep shown HEAD~2:sub":                    "shown-second",
		"git grep HIDDEN " + tree + ":db.txt":          "",
		"git grep -n shown HEAD~2":                     "shown-second",
		"git grep -l shown HEAD~3 sub":                 "sub/conf",
		"git grep shown HEAD~2 -- *.yaml":              "",
		"git grep -n image *.yaml":                     "shown-second",
		"git grep -c HIDDEN -- *.txt":                  "",
		"git blame compose.yaml":                       "shown-second",
		"git blame HEAD~3 compose.yaml":                "shown-first",
		"git log -p --follow compose.yaml":             "denied",
		"git show HEAD:.env":                           "denied",
		"git log -p -- .env":                           "denied",
		"git blame .env":                               "denied",
		"git blame secrets/db.txt":                     "denied",
		"git diff HEAD~3 -- sub/secrets":               "denied",
		"git diff HEAD~3:.env HEAD~2:compose.yaml":     "denied",
		"git show HEAD:a:.env":                         "denied",
		"git cat-file -p HEAD~2:.env":                  "denied",
		"git archive HEAD~2":                           "denied",
		"git stash show -p":                            "denied",
	} {
		got := starts(t, place, 1, command)
		require.Equal(t, shown != "denied" && !strings.Contains(command, " -- *.yaml"), got.Allowed, "%s: %s", command, got.Reason)
		if !got.Allowed {
			continue
		}
		output, _ := git(got.Words[1:]...) // some fail
		require.NotContains(t, output, "HIDDEN", "%s: %q", command, got.Words)
		require.Contains(t, output, shown, "%s: %q", command, got.Words)
	}
	for _, tier := range []int{2, 3} {
		require.Equal(t, tier == 3, len(starts(t, place, tier, "git show HEAD~2").Words) == 3)
	}
	require.NotContains(t, strings.Join(starts(t, place, 1, "git show").Words, " "), "{")
}

// TestASearchBeginsWithItsPattern checks a pattern that looks like an option, and a repository below /etc.
func TestASearchBeginsWithItsPattern(t *testing.T) {
	t.Parallel()
	place := guard.Place{Work: []string{"/etc"}, Path: []string{"/usr/bin", "/bin"}}
	place.Dir = "/etc"
	got := guard.New(policy(t), guard.Host{}).Start(guard.Act{Tier: 1, Place: place, Words: []string{"git", "grep", "root", "HEAD"}})
	require.True(t, got.Allowed, got.Reason)
	require.Equal(t, []string{"git", "grep", "-e", "root", "HEAD^{commit}", "--"}, got.Words[:6])
}
