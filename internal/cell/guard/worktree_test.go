package guard_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

// inWorktree returns the place of a session in a worktree of a repository with a compose project. The replacer puts its
// directories into commands. /live is the directory from which the worktree was made, and /tree is the worktree.
func inWorktree(t *testing.T) (guard.Place, *strings.Replacer) {
	t.Helper()
	root := t.TempDir()
	live, tree, state := root+"/live", root+"/state/worktrees/chain", root+"/state"
	common := live + "/.git"
	for path, content := range map[string]string{
		common + "/config":                    "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@git.lan:ops/repo.git\n",
		common + "/worktrees/chain/commondir": "../..\n",
		live + "/compose.yaml":                "services:\n  jellyfin: {image: jellyfin}\n",
		live + "/data/file":                   "x\n",
		tree + "/.git":                        "gitdir: " + common + "/worktrees/chain\n",
		tree + "/compose.yaml":                "services:\n  jellyfin: {image: jellyfin}\n",
		tree + "/nginx.conf":                  "events {}\n",
		state + "/claudeops.db":               "",
		state + "/worktrees/other/file":       "",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return guard.Place{
		Work: []string{tree}, Home: root + "/agent", Temp: root + "/session", Path: []string{"/usr/bin", "/bin"},
		Own:    []string{state, state + "/worktrees"},
		Origin: live,
	}, strings.NewReplacer("/live", live, "/tree", tree, "/state", state)
}

func TestInAWorktree(t *testing.T) {
	t.Parallel()
	place, here := inWorktree(t)
	g := guard.New(policy(t), guard.Host{})
	decide := func(tier int, tool string, input map[string]string) guard.Decision {
		encoded, err := json.Marshal(input)
		require.NoError(t, err)
		return g.Decide(guard.Call{Tier: tier, Tool: tool, Input: encoded, Place: place})
	}
	bash := func(command string) guard.Decision {
		return decide(2, "Bash", map[string]string{"command": here.Replace(command)})
	}
	for _, command := range []string{
		"git status",
		"git diff && git log -3",
		"git add -A",
		"git commit -m 'raise the limit'",
		"git switch -c fix/limit",
		"git push -u origin fix/limit",
		"cat nginx.conf /live/data/file",
		"cd /live && ls",
		"cd /live && git log -3",
		"git -C /live diff",
		"git -C /live show HEAD:compose.yaml",
		"docker compose ps",
		"docker compose config -q",
		"cd /live && docker compose ps",
		"cd /live && docker compose restart jellyfin",
		"cd /live && docker compose -f compose.yaml up -d jellyfin",
		"docker compose -f /live/compose.yaml logs jellyfin",
		"touch new",
	} {
		got := bash(command)
		require.True(t, got.Allowed, "%s: %s", command, got.Reason)
	}
	for _, command := range []string{
		"cd /live && docker compose -f compose.yaml up -d",
		"docker compose up -d",
		"docker compose restart jellyfin",
		"docker compose start jellyfin",
		"cd /live && docker compose -f /tree/compose.yaml up -d jellyfin",
		"cd /live && git switch -c fix/limit",
		"cd /live && git commit -m x",
		"git -C /live add -A",
		"git -C /live pull --ff-only",
		"touch /live/new",
		"echo x > /live/data/file",
		"echo x > .git",
		"cat /live/.git/config",
		"cat /state/claudeops.db",
		"cat /state/worktrees/other/file",
		"git -C /state/worktrees/other status",
	} {
		require.False(t, bash(command).Allowed, command)
	}
	require.True(t, decide(2, "Edit", map[string]string{"file_path": here.Replace("/tree/nginx.conf")}).Allowed)
	require.False(t, decide(2, "Edit", map[string]string{"file_path": here.Replace("/live/data/file")}).Allowed)
	require.True(t, decide(2, "Read", map[string]string{"file_path": here.Replace("/live/data/file")}).Allowed)
	require.Contains(t, bash("docker compose up -d").Reason, here.Replace("use cd /live"))
	require.False(t, decide(3, "Bash", map[string]string{"command": here.Replace("cat /state/worktrees/other/file")}).Allowed)
	require.True(t, decide(3, "Bash", map[string]string{"command": here.Replace("cd /tree && make deploy")}).Allowed)
}

// TestBareRepositories checks that git takes no settings from a repository that an agent has made. Git before 2.38
// would start what they name: where the kernel judges git itself, with other words by an alias.
func TestBareRepositories(t *testing.T) {
	t.Parallel()
	place, _ := stage(t)
	g := guard.New(policy(t), guard.Host{})
	place.Dir = place.Work[0] + "/d/bare/objects"
	require.NoError(t, os.MkdirAll(place.Dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Dir(place.Dir)+"/HEAD", []byte("ref: refs/heads/a\n"), 0o600))
	allows := func(words string) bool {
		return g.Start(guard.Act{Tier: 2, Place: place, Words: strings.Fields(words)}).Allowed
	}
	for _, words := range []string{"git add -A", "git -C .. status"} {
		require.False(t, allows(words), words)
	}
	require.True(t, allows("git -C ../../.. add -A"))
}
