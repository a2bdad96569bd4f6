package cell

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/records/transcripts"
)

// conversationTest is a worker's store with one session, which has the rights of the agents' user.
type conversationTest struct {
	conversations

	privates privates
	archive  string
	work     string
	secret   string
}

func newConversationTest(t *testing.T) *conversationTest {
	t.Helper()
	home := t.TempDir()
	state, archive := filepath.Join(home, "state"), filepath.Join(home, "archive")
	opened, err := transcripts.Open(t.Context(), "file://"+archive)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, opened.Close()) })
	options := Options{
		Conversations: filepath.Join(state, "conversations"), Sessions: filepath.Join(state, "sessions"),
		ConfigDir: filepath.Join(state, "claude"), Archive: bucket{opened}, Logger: slog.New(slog.DiscardHandler),
		Driver: claude.Options{Environ: []string{"ANTHROPIC_API_KEY=not-a-key"}, ConfigDir: filepath.Join(state, "claude")},
	}
	conversations, err := newConversations(options)
	require.NoError(t, err)
	privates, err := newPrivates(options)
	require.NoError(t, err)
	secret := filepath.Join(state, "token")
	require.NoError(t, os.WriteFile(secret, []byte(`{"token":"9f86d081884c7d65"}`+"\n"), 0o600))
	return &conversationTest{conversations, privates, archive, t.TempDir(), secret}
}

// bucket is an Archive in the archive of records.
type bucket struct{ *transcripts.Archive }

func (b bucket) Saver(sessionID, path string) (func(context.Context) error, error) {
	local, err := b.Copy(sessionID, path)
	return func(ctx context.Context) error {
		_, err := local.Save(ctx)
		return err
	}, err
}

func (bucket) Failed() {}

// session is a session that runs.
type session struct {
	*intake

	own  *private
	path string
}

// begin starts a session. Its transcript is at the path of the result.
func (c *conversationTest) begin(t *testing.T, id, resume string) session {
	t.Helper()
	own, err := c.privates.open(t.Context(), id)
	require.NoError(t, err)
	in, err := c.place(own, Spec{SessionID: id, Resume: resume, Dir: c.work})
	require.NoError(t, err)
	name, err := claude.TranscriptName(c.work, id)
	require.NoError(t, err)
	path := filepath.Join(own.path, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	return session{in, own, path}
}

// said returns a line of a transcript.
func said(id, message, parent, kind, text string) string {
	line, err := json.Marshal(map[string]any{
		"type": kind, "uuid": message, "parentUuid": parent, "sessionId": id, "message": map[string]any{"role": kind, "content": text},
	})
	if err != nil {
		panic(err)
	}
	return string(line) + "\n"
}

// inStore returns everything that the worker has stored of conversations, in its own copies and in the archive.
func (c *conversationTest) inStore(t *testing.T) (all string) {
	t.Helper()
	for _, dir := range []string{c.dir, c.archive} {
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		require.NoError(t, fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				content, failed := root.ReadFile(path)
				require.NoError(t, failed)
				all += path + "\n" + string(content)
			}
			return err
		}))
		require.NoError(t, root.Close())
	}
	return all
}

// TestArchiveIsNoDeputy lets an agent put something else in the place of its transcript. Nothing of it may get into the
// worker's copy or into the archive, and the end of the session must not wait for it.
func TestArchiveIsNoDeputy(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(t *testing.T, path, secret string) error{
		"a link":          func(_ *testing.T, path, secret string) error { return os.Symlink(secret, path) },
		"a hard link":     func(_ *testing.T, path, secret string) error { return os.Link(secret, path) },
		"a dangling link": func(_ *testing.T, path, secret string) error { return os.Symlink(secret+".new", path) },
		"a link in place of the directory": func(t *testing.T, path, secret string) error {
			t.Helper()
			require.NoError(t, os.Link(secret, filepath.Join(filepath.Dir(secret), filepath.Base(path))))
			require.NoError(t, os.RemoveAll(filepath.Dir(path)))
			return os.Symlink(filepath.Dir(secret), filepath.Dir(path))
		},
		"a pipe":      func(_ *testing.T, path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory": func(_ *testing.T, path, _ string) error { return os.Mkdir(path, 0o700) },
		"a sparse file": func(t *testing.T, path, _ string) error {
			t.Helper()
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			return os.Truncate(path, 4<<40)
		},
		"an endless line": func(t *testing.T, path, _ string) error {
			t.Helper()
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			return os.Truncate(path, maxTranscript)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConversationTest(t)
			s := c.begin(t, uuid.NewString(), "")
			require.NoError(t, attack(t, s.path, c.secret))
			require.Error(t, s.take(t.Context()))
			end, err := c.keep(t.Context(), s.intake)
			require.NoError(t, err)
			require.False(t, end(time.Minute), "nothing is archived")
			require.NotContains(t, c.inStore(t), "9f86d081884c7d65")
			require.NoFileExists(t, c.path(s.sessionID))
			require.NoError(t, s.own.close())
			require.FileExists(t, c.secret)
		})
	}
}

// TestTakingInEndsWithItsContext takes in a file that takes long to read.
func TestTakingInEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := newConversationTest(t)
	s := c.begin(t, uuid.NewString(), "")
	require.NoError(t, os.WriteFile(s.path, []byte(strings.Repeat("{}\n", 1000)), 0o600))
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, s.take(ended), context.Canceled)
	require.NoFileExists(t, c.path(s.sessionID))
	require.NoError(t, s.take(t.Context()))
	require.FileExists(t, c.path(s.sessionID))
	require.NoError(t, s.own.close())
}

// TestAConversationIsNotWrittenThroughLinks plants links where the worker writes the conversation that a session
// resumes.
func TestAConversationIsNotWrittenThroughLinks(t *testing.T) {
	t.Parallel()
	c := newConversationTest(t)
	id := uuid.NewString()
	require.NoError(t, os.WriteFile(c.path(id), []byte(said(id, "m1", "", "user", "the conversation")), 0o600))
	outside := t.TempDir()
	name, err := claude.TranscriptName(c.work, id)
	require.NoError(t, err)
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, root.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, root.Symlink(filepath.Join(outside, "new"), name))
	_, err = c.put(root, name, id)
	require.NoError(t, err)
	info, err := root.Lstat(name)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular(), "the link is replaced")
	require.NoError(t, root.RemoveAll("projects"))
	require.NoError(t, root.Symlink(outside, "projects"))
	_, err = c.put(root, name, id)
	require.Error(t, err)
	require.NoError(t, root.Close())
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestOnlyLinesOfTheSessionAreTaken checks that lines of other conversations, and what is not JSON, are left out.
func TestOnlyLinesOfTheSessionAreTaken(t *testing.T) {
	t.Parallel()
	c := newConversationTest(t)
	s := c.begin(t, uuid.NewString(), "")
	kept := said(s.sessionID, "m1", "", "user", "look") + `{"type":"summary"}` + "\n"
	require.NoError(t, os.WriteFile(s.path, []byte(
		said(uuid.NewString(), "m0", "", "user", "not mine")+"garbage\n[]\n"+kept+`{"type":"user","mess`), 0o600))
	require.NoError(t, s.take(t.Context()))
	taken, err := os.ReadFile(c.path(s.sessionID))
	require.NoError(t, err)
	require.Equal(t, kept, string(taken))
	require.NoError(t, s.own.close())
}

// TestWhatASessionInheritedIsSealed lets a session change the conversation that it continues: as a fork, and in place.
func TestWhatASessionInheritedIsSealed(t *testing.T) {
	t.Parallel()
	parent, child := uuid.NewString(), uuid.NewString()
	thread := func(id string) []string {
		return []string{
			said(id, "m1", "", "user", "look"), said(id, "m2", "m1", "assistant", "the disk is full"), said(id, "m3", "m2", "user", "repair it"),
		}
	}
	for name, tt := range map[string]struct {
		inPlace bool
		// change changes the lines that the CLI has written.
		change func(lines []string) []string
		how    string
	}{
		"nothing": {change: func(lines []string) []string { return lines }},
		"another message": {change: func(lines []string) []string {
			lines[1] = said(child, "m2", "m1", "assistant", "all is well")
			return lines
		}, how: "message m2 was changed"},
		"another link": {change: func(lines []string) []string {
			lines[1] = said(child, "m2", "", "assistant", "the disk is full")
			return lines
		}, how: "message m2 was changed"},
		"a message twice": {change: func(lines []string) []string {
			return append([]string{said(child, "m2", "m1", "assistant", "all is well")}, lines...)
		}, how: "message m2 was changed"},
		"no message": {change: func(lines []string) []string { return append(lines[:1:1], lines[2:]...) }, how: "message m1 was left out"},
		"another thread": {change: func(lines []string) []string {
			return append(lines, said(child, "x1", "", "user", "look"), said(child, "x2", "x1", "assistant", "all is well"))
		}, how: "was left out"},
		"nothing in place": {inPlace: true, change: func(lines []string) []string { return lines }},
		"a message in place": {inPlace: true, change: func(lines []string) []string {
			lines[1] = said(parent, "m2", "m1", "assistant", "all is well")
			return lines
		}, how: "bytes are others"},
		"less in place": {inPlace: true, change: func(lines []string) []string { return lines[:1] }, how: "bytes are others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConversationTest(t)
			require.NoError(t, os.WriteFile(c.path(parent), []byte(strings.Join(thread(parent)[:2], "")), 0o600))
			id := child
			if tt.inPlace {
				id = parent
			}
			s := c.begin(t, id, parent)
			lines := thread(id)
			require.NoError(t, os.WriteFile(s.path, []byte(strings.Join(lines, "")), 0o600))
			end, err := c.keep(t.Context(), s.intake)
			require.NoError(t, err)
			end(time.Minute)
			require.NoError(t, c.altered(id), "the CLI itself changes nothing")
			require.NoError(t, os.WriteFile(s.path, []byte(strings.Join(tt.change(lines), "")), 0o600))
			require.NoError(t, os.Chtimes(s.path, time.Now(), time.Now().Add(time.Second)))
			end, err = c.keep(t.Context(), s.intake)
			require.NoError(t, err)
			end(time.Minute)
			require.NoError(t, s.own.close())
			stored, err := filepath.Glob(filepath.Join(c.archive, id, "*"))
			require.NoError(t, err)
			if tt.how == "" {
				require.NoError(t, c.altered(id))
				require.Len(t, stored, 1)
				return
			}
			var found *AlteredError
			require.ErrorAs(t, c.altered(id), &found)
			require.Contains(t, found.How, tt.how)
			require.Empty(t, stored, "no other host resumes an earlier state")
			copied, err := os.ReadFile(c.path(id))
			require.NoError(t, err)
			require.Equal(t, strings.Join(thread(id), ""), string(copied), "what was taken before stays, for people")
		})
	}
}

// TestSessionsHaveTheirOwnDirectories checks what a session finds in its directories, and that nothing of them stays.
func TestSessionsHaveTheirOwnDirectories(t *testing.T) {
	t.Parallel()
	c := newConversationTest(t)
	require.NoError(t, os.MkdirAll(filepath.Join(c.privates.home, ".kube"), 0o700))
	first, second := c.begin(t, uuid.NewString(), ""), c.begin(t, uuid.NewString(), "")
	one, other := first.own.variables(), second.own.variables()
	for _, name := range []string{"HOME", "CLAUDE_CONFIG_DIR", "TMPDIR", "CLAUDE_CODE_TMPDIR"} {
		require.NotEqual(t, one[name], other[name], name)
		require.DirExists(t, one[name])
	}
	target, err := os.Readlink(filepath.Join(one["HOME"], ".kube"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(c.privates.home, ".kube"), target, "the operator's files for agents")
	found, err := os.ReadDir(one["CLAUDE_CONFIG_DIR"])
	require.NoError(t, err)
	require.Equal(t, "[d home/ d projects/]", fmt.Sprint(found))
	var sandbox claude.Sandbox
	first.own.grant(&sandbox)
	require.ElementsMatch(t, []string{one["TMPDIR"], one["CLAUDE_CONFIG_DIR"]}, sandbox.Writable)

	_, err = c.privates.leftover(first.sessionID)
	require.NoError(t, err)
	require.DirExists(t, one["HOME"], "a session that runs has left nothing")
	require.NoError(t, first.own.close())
	require.NoError(t, second.own.close())
	for _, dir := range []string{one["HOME"], one["TMPDIR"], other["CLAUDE_CONFIG_DIR"]} {
		require.NoDirExists(t, dir)
	}
	require.DirExists(t, filepath.Join(c.privates.home, ".kube"))
	left, err := os.ReadDir(c.privates.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestLeftoversAreTakenIn checks what the next worker does about a session whose worker was killed: it takes in the
// conversation, unless the agent has changed what it had inherited or the CLI has not written all of that, and removes
// the rest.
func TestLeftoversAreTakenIn(t *testing.T) {
	t.Parallel()
	parent, id := uuid.NewString(), uuid.NewString()
	first, second := said(id, "m1", "", "user", "look"), said(id, "m2", "m1", "assistant", "the disk is full")
	added := said(id, "m3", "m2", "user", "repair it")
	for name, tt := range map[string]struct {
		written          string
		altered, nothing bool
	}{
		"honest":     {written: first + second + added},
		"altered":    {written: said(id, "m1", "", "user", "obey") + second + added, altered: true},
		"unfinished": {written: first + second[:40], nothing: true},
		"empty":      {nothing: true},
		"left out":   {written: first + said(id, "m3", "m1", "user", "repair it"), altered: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConversationTest(t)
			inherited := said(parent, "m1", "", "user", "look") + said(parent, "m2", "m1", "assistant", "the disk is full")
			require.NoError(t, os.WriteFile(c.path(parent), []byte(inherited), 0o600))
			s := c.begin(t, id, parent)
			written := tt.written
			require.NoError(t, os.WriteFile(s.path, []byte(written), 0o600))
			require.NoError(t, s.own.lock.Close(), "the worker is killed")

			host := &Host{conversations: c.conversations, privates: c.privates, logger: c.logger}
			host.reclaimAll(t.Context())
			require.NoDirExists(t, s.own.path)
			require.NoDirExists(t, s.own.temporary.path)
			if tt.altered || tt.nothing {
				require.Equal(t, tt.altered, c.altered(id) != nil)
				require.NoFileExists(t, c.path(id))
				return
			}
			require.NoError(t, c.altered(id))
			taken, err := os.ReadFile(c.path(id))
			require.NoError(t, err)
			require.Equal(t, written, string(taken))
		})
	}
}

// TestSavesAreWatched checks that saves go on after a failure, and that what stays wrong is told once.
func TestSavesAreWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		saves, told := 0, 0
		save := func(context.Context) error {
			saves++
			if saves%6 > 3 {
				return errUnfinished
			}
			return nil
		}
		go watchSaves(ctx, time.Second, save, func(error) { told++ })
		time.Sleep(11*time.Second + time.Millisecond)
		stop()
		synctest.Wait()
		require.Equal(t, 11, saves)
		require.Equal(t, 2, told)
	})
}
