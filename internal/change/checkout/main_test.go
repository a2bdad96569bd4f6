package checkout_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/change/checkout"
)

// patience is longer than any test waits.
const patience = 5 * time.Minute

// holder is an environment variable that makes the test binary enter a place and stay there. Its value is the root of a
// stage.
const holder = "CHECKOUT_TEST_HOLDER"

func TestMain(m *testing.M) {
	if root := os.Getenv(holder); root != "" {
		hold(root)
	}
	os.Exit(m.Run())
}

// hold enters the shared directory of a stage, and waits to be killed.
func hold(root string) {
	s := stage{root: root, work: filepath.Join(root, "work")}
	keeper, err := checkout.New(s.options())
	if err == nil {
		_, err = keeper.Enter(context.Background(), s.session("holder"), func(string) {})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("entered")
	time.Sleep(patience)
}

// stage has the directories of a test.
type stage struct {
	t          *testing.T
	root, work string
	// searchPath is the PATH with which git is found. If it is empty, the PATH of the test is used.
	searchPath string
	off        bool
	// ended lists the sessions whose processes were ended.
	ended []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := &stage{t: t, root: root, work: filepath.Join(root, "work")}
	for _, dir := range []string{s.work, filepath.Join(root, "worktrees")} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	return s
}

func (s *stage) options() checkout.Options {
	path := s.searchPath
	if path == "" {
		path = os.Getenv("PATH")
	}
	options := checkout.Options{
		Worktrees: filepath.Join(s.root, "worktrees"), Locks: filepath.Join(s.root, "locks"), SearchPath: path, Patience: patience,
		End: func(session string) error {
			s.ended = append(s.ended, session)
			return nil
		},
		Sandbox: &process.Sandbox{Hidden: []string{filepath.Join(s.root, "hidden")}},
	}
	if s.off {
		options.Worktrees = ""
	}
	return options
}

func (s *stage) keeper() *checkout.Keeper {
	s.t.Helper()
	keeper, err := checkout.New(s.options())
	require.NoError(s.t, err)
	return keeper
}

// session returns a session of the chain with the given name.
func (s *stage) session(name string) checkout.Session {
	return checkout.Session{ID: name, Name: name, Directory: s.work}
}

// enter enters the place of a session, which must be free.
func (s *stage) enter(session checkout.Session) *checkout.Place {
	s.t.Helper()
	place, err := s.keeper().Enter(s.t.Context(), session, func(what string) { s.t.Errorf("it waits: %s", what) })
	require.NoError(s.t, err)
	return place
}

// leave tidies and releases a place.
func (s *stage) leave(place *checkout.Place) checkout.Left {
	s.t.Helper()
	left := place.Tidy(s.t.Context(), patience)
	require.NoError(s.t, place.Release())
	return left
}

// git runs git in a directory, as a person would.
func (s *stage) git(dir string, args ...string) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), "git", append([]string{"-C", dir}, args...)...)
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.root, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	output, err := command.CombinedOutput()
	require.NoError(s.t, err, string(output))
	return strings.TrimSpace(string(output))
}

// write writes a file below the root.
func (s *stage) write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s.t, os.WriteFile(path, []byte(content), 0o600))
}

// repository makes the shared directory a repository with one commit.
func (s *stage) repository() *stage {
	s.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		s.t.Skip("needs git")
	}
	s.git(s.work, "init", "--quiet", "--initial-branch=main")
	s.write("work/compose.yaml", "services: {}\n")
	s.write("work/sub/config", "x\n")
	s.write("work/.gitignore", "*.cache\n")
	s.commit(s.work, "first")
	return s
}

// commit commits everything in a directory.
func (s *stage) commit(dir, message string) {
	s.t.Helper()
	s.git(dir, "add", "--all")
	s.git(dir, "commit", "--quiet", "--message", message)
}
