package transcripts

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob/memblob"
)

// restoreVariable is an environment variable that makes the test binary restore a conversation. It contains the
// archive's location and the local path, separated by a space.
const restoreVariable = "CLAUDEOPS_TEST_RESTORE"

// TestMain lets the test binary act as a process that is killed while it restores.
func TestMain(m *testing.M) {
	if task := os.Getenv(restoreVariable); task != "" {
		os.Exit(restoreAsked(task))
	}
	os.Exit(m.Run())
}

func restoreAsked(task string) int {
	location, path, _ := strings.Cut(task, " ")
	archive, err := Open(context.Background(), location)
	if err != nil {
		return 2
	}
	local, err := archive.Copy(session, path)
	if err != nil {
		return 3
	}
	if _, err := local.Restore(context.Background()); err != nil {
		return 4
	}
	return 0
}

const (
	session      = "4f2b7c1e-8b8e-4d53-9f0e-0d9c7e0f7a11"
	otherSession = "9a1d2c3b-0000-4000-8000-0d9c7e0f7a11"
)

// inMemory returns an archive that disappears with the test.
func inMemory(t testing.TB) *Archive {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	archive := &Archive{bucket: bucket, list: bucketLister(bucket)}
	t.Cleanup(func() { _ = archive.Close() })
	return archive
}

// inDirectory returns an archive in dir, which need not exist.
func inDirectory(t testing.TB, dir string) *Archive {
	t.Helper()
	archive, err := Open(t.Context(), "file://"+dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = archive.Close() })
	return archive
}

// place returns a path for a transcript on a simulated host.
func place(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "projects", "-work", session+".jsonl")
}

func copyAt(t testing.TB, archive *Archive, path string) *Copy {
	t.Helper()
	local, err := archive.Copy(session, path)
	require.NoError(t, err)
	return local
}

// put writes text as the content of the file at path.
func put(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// add appends text to the file at path.
func add(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}

// text returns the content of the file at path.
func text(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content)
}

// lines returns a transcript of n lines that contain the writer's name.
func lines(who string, n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, `{"type":"user","who":%q,"line":%d}`+"\n", who, i)
	}
	return all.String()
}

func save(t testing.TB, local *Copy) {
	t.Helper()
	saved, err := local.Save(t.Context())
	require.NoError(t, err)
	require.True(t, saved)
}

// archived returns the transcript that a new host would restore.
func archived(t testing.TB, archive *Archive) string {
	t.Helper()
	path := place(t)
	restored, err := copyAt(t, archive, path).Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, FromArchive, restored.Outcome)
	return text(t, path)
}

// files lists the files below dir, sorted and with slashes.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(dir, path)
			found = append(found, filepath.ToSlash(relative))
		}
		return err
	}))
	return found
}
