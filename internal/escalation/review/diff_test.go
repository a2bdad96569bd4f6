package review_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation/review"
)

// TestDiffOfGit reads what git prints about a change of every kind.
func TestDiffOfGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "git", append([]string{
			"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.quotePath=true",
		}, args...)...)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
		output, err := command.Output()
		require.NoError(t, err)
		return string(output)
	}
	write := func(name, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	git("init", "--quiet")
	write("compose.yaml", "1\n2\n3\n4\n5\n")
	write("gone\tfile", "x\n")
	git("add", "--all")
	git("commit", "--quiet", "--message", "first")
	write("compose.yaml", "1\ntwo\nand\n3\n5\n")
	write("ä ö/new", "++ b/fake\n@@ -1 +1 @@\n")
	write("image", "\x00\x01")
	require.NoError(t, os.Remove(filepath.Join(dir, "gone\tfile")))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	git("add", "--all")
	git("commit", "--quiet", "--message", "second")

	files, err := review.ParseDiff(git("diff", "--raw", "--numstat", "--no-renames", "-z", "HEAD~", "HEAD"))
	require.NoError(t, err)
	require.ElementsMatch(t, []review.File{
		{Path: "compose.yaml", Added: 2, Removed: 2},
		{Path: "gone\tfile", Removed: 1, Deleted: true},
		{Path: "image", Binary: true},
		{Path: "link", Added: 1, Special: true},
		{Path: "ä ö/new", Added: 2},
	}, files)
	require.Equal(t, 8, review.Lines(files))
	patch := git("diff", "--no-renames", "--patch", "HEAD~", "HEAD")
	review.MarkUnread(files, patch, func(text string) string { return strings.ReplaceAll(text, "fake", "[masked]") })
	unread := map[string]string{}
	for _, file := range files {
		unread[file.Path] = file.Unread
	}
	require.Equal(t, map[string]string{
		"compose.yaml": "", "gone\tfile": "", "image": "not text", "link": "a link or a submodule",
		"ä ö/new": "a secret, which is masked",
	}, unread)
	review.MarkUnread(files, "", strings.Clone)
	require.Equal(t, "its place in the change is unknown", files[0].Unread)

	none, err := review.ParseDiff("")
	require.NoError(t, err)
	require.Empty(t, none)
	for _, broken := range []string{":100644 100644 a b M", ":1 2\x00x", "1\t2\tx", "nothing", ":100644 100644 a b M\x00x\x00one\t2\tx"} {
		_, err := review.ParseDiff(broken)
		require.Error(t, err, "%q", broken)
	}
}

func TestForPerson(t *testing.T) {
	t.Parallel()
	within := review.Scope{Within: "web", Listed: true, MaxFiles: 9, MaxLines: 9}
	require.Empty(t, within.ForPerson([]review.File{{Path: "web/compose.yaml", Listed: true}}))
	require.Equal(t, []string{
		`it changes files outside of web: .github/a, website/x`,
		`it changes files that the policy's review.paths do not name: "web/tests/\n# ok"`,
		`the reviewer cannot read all of it as it is: web/link (a link or a submodule), web/image (not text)`,
	}, within.ForPerson([]review.File{
		{Path: ".github/a"},
		{Path: "web/tests/\n# ok"},
		{Path: "web/link", Unread: "a link or a submodule", Listed: true},
		{Path: "web/image", Unread: "not text", Listed: true},
		{Path: "website/x", Listed: true},
	}))
	many := []review.File{{Path: "web/1"}, {Path: "web/2"}, {Path: "web/3"}, {Path: "web/4"}, {Path: "web/5"}}
	require.Equal(t, []string{
		`it changes files that the policy's review.paths do not name: web/1, web/2, web/3, and 2 more`,
	}, within.ForPerson(many))
	within.Listed = false
	require.Empty(t, within.ForPerson(many), "an advisory review pushes nothing")
}
