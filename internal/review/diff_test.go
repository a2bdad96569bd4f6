package review_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/review"
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
	require.Equal(t, map[string][]review.Span{
		"compose.yaml": {{From: 2, To: 3}, {From: 4, To: 5}},
		"ä ö/new":      {{From: 1, To: 2}},
		"link":         {{From: 1, To: 1}},
		"gone\tfile":   {{From: 0, To: math.MaxInt32}},
	}, review.ChangedLines(git("diff", "--unified=0", "HEAD~", "HEAD")))

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
	for path, want := range map[string]review.Class{
		"compose.yaml": review.ClassOrdinary, "web/compose.yaml": review.ClassOrdinary, "latest/notes.md": review.ClassOrdinary,
		"protest.yaml": review.ClassOrdinary, "contest/a.yml": review.ClassOrdinary,
		"internal/port_test.go": review.ClassTest, "web/Tests/port.sh": review.ClassTest, "test_port.py": review.ClassTest,
		"src/PortTest.java": review.ClassTest, "Ops.Tests/Ports.cs": review.ClassTest, "test-port.sh": review.ClassTest, "e2e/a.ts": review.ClassTest,
		"contest.py": review.ClassOrdinary, "latest.yaml": review.ClassOrdinary, "src/features/login.ts": review.ClassOrdinary,
		"etc/sudoers.d/web": review.ClassPolicy, ".appveyor.yml": review.ClassCI, "lefthook.yml": review.ClassGate,
		"ui/port.spec.ts": review.ClassTest, "roles/web/molecule/default/verify.yml": review.ClassTest,
		".github/workflows/ci.yaml": review.ClassCI, ".gitlab-ci.yml": review.ClassCI, "a/Jenkinsfile": review.ClassCI,
		"deploy/policy.yaml": review.ClassPolicy, "CLAUDE.md": review.ClassPolicy, "a/.claude/settings.json": review.ClassPolicy,
		"docs/CODEOWNERS": review.ClassPolicy, review.ChecksFile: review.ClassGate, "Makefile": review.ClassGate,
		".pylintrc": review.ClassGate, "web/.prettierrc.json": review.ClassGate, "pytest.ini": review.ClassGate, ".yamllint": review.ClassGate,
		".markdownlint.yaml": review.ClassGate, "grafana.ini": review.ClassOrdinary, "nginx.conf": review.ClassOrdinary,
		".env": review.ClassOrdinary, ".pre-commit-config.yaml": review.ClassGate, ".gitattributes": review.ClassSpecial, ".gitmodules": review.ClassSpecial,
	} {
		require.Equal(t, want, review.File{Path: path}.Class(), path)
	}
	within := review.Scope{Within: "web", MaxFiles: 9, MaxLines: 9}
	require.Empty(t, within.ForPerson([]review.File{{Path: "web/compose.yaml"}}))
	require.Equal(t, []string{
		"it changes files outside of web: .github/a, Makefile, website/x",
		"it changes continuous integration: .github/a",
		"it changes how changes are checked: Makefile",
		"it changes links, submodules or what git makes of files: web/link",
		"it changes files that are not text: web/image",
	}, within.ForPerson([]review.File{
		{Path: ".github/a"}, {Path: "Makefile"}, {Path: "web/link", Special: true}, {Path: "web/image", Binary: true}, {Path: "website/x"},
	}))
	many := []review.File{{Path: "web/tests/1"}, {Path: "web/tests/2"}, {Path: "web/tests/3"}, {Path: "web/tests/4"}, {Path: "web/tests/5"}}
	require.Equal(t, []string{"it changes tests: web/tests/1, web/tests/2, web/tests/3, and 2 more"}, within.ForPerson(many))
}
