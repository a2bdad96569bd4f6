package transcripts

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

func TestAConversationOutlivesItsHost(t *testing.T) {
	t.Parallel()
	for name, archive := range map[string]*Archive{"memory": inMemory(t), "directory": inDirectory(t, filepath.Join(t.TempDir(), "a b"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := place(t)
			put(t, path, lines("first", 100))
			first := copyAt(t, archive, path)
			save(t, first)
			add(t, path, lines("more", 10))
			save(t, first)

			elsewhere := place(t)
			restored, err := copyAt(t, archive, elsewhere).Restore(t.Context())
			require.NoError(t, err)
			require.Equal(t, Restored{Outcome: FromArchive}, restored)
			require.Equal(t, text(t, path), text(t, elsewhere))
			info, err := os.Stat(elsewhere)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			info, err = os.Stat(filepath.Dir(elsewhere))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
			require.Len(t, files(t, filepath.Dir(elsewhere)), 1)
		})
	}
}

func TestADirectoryHoldsOneUnpackableFileForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "archive")
	archive, path := inDirectory(t, dir), place(t)
	put(t, path, lines("first", 1000))
	save(t, copyAt(t, archive, path))

	require.Len(t, files(t, dir), 1)
	require.Regexp(t, "^"+session+`/00000001-[0-9a-f-]{36}\.jsonl\.zst$`, files(t, dir)[0])
	object := filepath.Join(dir, files(t, dir)[0])
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Dir(object): 0o700, object: 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
	packed := text(t, object)
	require.Less(t, len(packed), len(lines("first", 1000))/5, "it is compressed")
	unpacker, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer unpacker.Close()
	unpacked, err := unpacker.DecodeAll([]byte(packed), nil)
	require.NoError(t, err, "any program can unpack it")
	require.Equal(t, lines("first", 1000), string(unpacked))
}

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "archive")
	for name, archive := range map[string]*Archive{"memory": inMemory(t), "directory": inDirectory(t, dir)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, archive.Remove(t.Context(), session), "there is nothing to remove")
			path := place(t)
			put(t, path, lines("first", 10))
			for range 2 { // two writers
				save(t, copyAt(t, archive, path))
				add(t, path, lines("more", 10))
			}
			require.NoError(t, archive.Remove(t.Context(), session))
			require.NoError(t, archive.Remove(t.Context(), "../"+session))
			_, err := copyAt(t, archive, place(t)).Restore(t.Context())
			require.ErrorIs(t, err, ErrNotFound)
			if name == "directory" {
				require.NoDirExists(t, filepath.Join(dir, session))
			}
		})
	}
}

func TestNoArchive(t *testing.T) {
	t.Parallel()
	archive, err := Open(t.Context(), None)
	require.NoError(t, err)
	require.NoError(t, archive.Check(t.Context()))
	require.NoError(t, archive.Remove(t.Context(), session))
	path := place(t)
	local := copyAt(t, archive, path)
	_, err = local.Restore(t.Context())
	require.ErrorIs(t, err, ErrNotFound)

	put(t, path, lines("first", 1))
	restored, err := local.Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, KeptLocal, restored.Outcome)
	saved, err := local.Save(t.Context())
	require.NoError(t, err)
	require.False(t, saved)
	require.NoError(t, archive.Close())
}

func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"ftp://x", "", "mem", "file:///dev/null/x"} {
		_, err := Open(t.Context(), location)
		require.ErrorContains(t, err, "transcript archive", location)
	}
}

func TestASessionIDIsNoPath(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "..", "../../etc/passwd", session + "/.."} {
		_, err := inMemory(t).Copy(id, place(t))
		require.ErrorContains(t, err, "is not a UUID")
	}
}

// TestAnArchiveThatIsAwayIsNotAnEmptyOne uses an archive directory that was unmounted or is not readable. A
// conversation in it must not be reported as lost.
func TestAnArchiveThatIsAwayIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "archive")
	archive, path := inDirectory(t, dir), place(t)
	put(t, path, lines("first", 3))
	save(t, copyAt(t, archive, path))
	require.NoError(t, archive.Check(t.Context()))

	away := func() {
		require.Error(t, archive.Check(t.Context()))
		_, err := copyAt(t, archive, path).Restore(t.Context())
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrNotFound)
		require.NotErrorIs(t, err, ErrCorrupt)
	}
	require.NoError(t, os.Rename(dir, dir+".away"))
	away()
	put(t, dir, "a file in its place")
	away()
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".away", dir))
	require.Equal(t, lines("first", 3), archived(t, archive))
}

func TestALineThatIsBeingWrittenWaits(t *testing.T) {
	t.Parallel()
	archive, path := inMemory(t), place(t)
	local := copyAt(t, archive, path)
	put(t, path, `{"half":`)
	saved, err := local.Save(t.Context())
	require.NoError(t, err)
	require.False(t, saved, "there is no complete line yet")

	add(t, path, "1}\n"+`{"next":`)
	save(t, local)
	require.Equal(t, `{"half":1}`+"\n", archived(t, archive))

	restored, err := copyAt(t, archive, path).Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, KeptLocal, restored.Outcome, "the local file has everything that the archive has")
	add(t, path, "2}\n")
	save(t, local)
	require.Equal(t, text(t, path), archived(t, archive))
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	archive, path := inMemory(t), place(t)
	long := string(bytes.Repeat([]byte("x"), 300<<10))
	put(t, path, long+"\n"+long+"\n"+long)
	save(t, copyAt(t, archive, path))
	require.Equal(t, long+"\n"+long+"\n", archived(t, archive))
}

func TestNothingIsAskedForAnUnchangedFile(t *testing.T) {
	t.Parallel()
	archive, path := inMemory(t), place(t)
	put(t, path, lines("first", 3))
	local := copyAt(t, archive, path)
	save(t, local)
	require.NoError(t, archive.Close())

	saved, err := local.Save(t.Context())
	require.NoError(t, err)
	require.False(t, saved)
	add(t, path, lines("more", 1))
	_, err = local.Save(t.Context())
	require.Error(t, err, "now the archive is asked, which is closed")
}

func TestAMissingTranscriptIsNothingToSave(t *testing.T) {
	t.Parallel()
	local := copyAt(t, inMemory(t), place(t))
	saved, err := local.Save(t.Context())
	require.NoError(t, err)
	require.False(t, saved)
	_, err = local.Restore(t.Context())
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, session)
}

func TestAShrunkTranscriptReplacesNothing(t *testing.T) {
	t.Parallel()
	archive, path := inMemory(t), place(t)
	put(t, path, lines("first", 9))
	local := copyAt(t, archive, path)
	save(t, local)
	put(t, path, lines("first", 4))
	_, err := local.Save(t.Context())
	require.ErrorContains(t, err, "has shrunk from 9 lines to 4")
	require.Equal(t, lines("first", 9), archived(t, archive))
}

func TestConversationsAreApart(t *testing.T) {
	t.Parallel()
	archive, path := inMemory(t), place(t)
	put(t, path, lines("first", 9))
	save(t, copyAt(t, archive, path))
	other, err := archive.Copy(otherSession, place(t))
	require.NoError(t, err)
	_, err = other.Restore(t.Context())
	require.ErrorIs(t, err, ErrNotFound)
}

// BenchmarkSave archives a transcript of 10 MB, the size of a long conversation, into a directory.
func BenchmarkSave(b *testing.B) {
	archive, path := inDirectory(b, b.TempDir()), place(b)
	put(b, path, lines("first", 200_000))
	info, err := os.Stat(path)
	require.NoError(b, err)
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		add(b, path, lines("more", 1))
		save(b, copyAt(b, archive, path))
	}
}
