package transcripts

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// objectOf returns the path of the first generation in the archive in dir.
func objectOf(dir string) string {
	return filepath.Join(dir, session, "00000001-"+otherSession+".jsonl.zst")
}

// packed returns an object with content. change edits its header, so that the header can be wrong.
func packed(t testing.TB, content string, change func(*header)) []byte {
	t.Helper()
	whole, err := measureReader(strings.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	var object bytes.Buffer
	require.NoError(t, encode(&object, header{Format: format, SessionID: session, extent: whole}, strings.NewReader(content)))
	if change == nil {
		return object.Bytes()
	}
	// Replace the header and keep the frame with the compressed lines.
	size := 8 + int(object.Bytes()[4]) + int(object.Bytes()[5])<<8
	h, err := decodeHeader(&source{Reader: bytes.NewReader(object.Bytes())}, session)
	require.NoError(t, err)
	change(&h)
	var forged bytes.Buffer
	_ = encode(&forged, h, strings.NewReader(""))
	headerEnd := 8 + int(forged.Bytes()[4]) + int(forged.Bytes()[5])<<8
	return append(forged.Bytes()[:headerEnd:headerEnd], object.Bytes()[size:]...)
}

func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	content := lines("first", 50)
	intact := packed(t, content, nil)
	flipped := bytes.Clone(intact)
	flipped[len(flipped)-20] ^= 1
	for name, object := range map[string][]byte{
		"empty":             {},
		"garbage":           []byte(strings.Repeat("garbage ", 100)),
		"half a header":     intact[:20],
		"half the lines":    intact[:len(intact)-30],
		"a flipped bit":     flipped,
		"header only":       intact[:8+int(intact[4])+int(intact[5])<<8],
		"another hash":      packed(t, content, func(h *header) { h.SHA256 = strings.Repeat("0", 64) }),
		"fewer bytes":       packed(t, content, func(h *header) { h.Bytes-- }),
		"more bytes":        packed(t, content, func(h *header) { h.Bytes++ }),
		"other lines":       packed(t, content, func(h *header) { h.Lines++ }),
		"another session":   packed(t, content, func(h *header) { h.SessionID = otherSession }),
		"a future format":   packed(t, content, func(h *header) { h.Format = "claudeops-transcript/2" }),
		"plain JSON lines":  []byte(content),
		"something follows": append(bytes.Clone(intact), intact...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			archive := inDirectory(t, dir)
			put(t, objectOf(dir), string(object))

			missing := place(t)
			_, err := copyAt(t, archive, missing).Restore(t.Context())
			require.ErrorIs(t, err, ErrCorrupt)
			require.Empty(t, files(t, filepath.Dir(filepath.Dir(filepath.Dir(missing)))), "nothing is left behind")

			good := place(t)
			put(t, good, lines("first", 3))
			local := copyAt(t, archive, good)
			restored, err := local.Restore(t.Context())
			require.NoError(t, err)
			require.Equal(t, KeptLocal, restored.Outcome)
			require.Len(t, restored.Damaged, 1)
			require.Equal(t, lines("first", 3), text(t, good))

			save(t, local)
			require.Equal(t, lines("first", 3), archived(t, archive), "the next generation is intact")
			require.Equal(t, string(object), text(t, objectOf(dir)), "and nothing was deleted")
		})
	}
}

func TestTheGenerationBeforeTakesThePlaceOfADamagedOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive, path := inDirectory(t, dir), place(t)
	put(t, path, lines("first", 5))
	save(t, copyAt(t, archive, path))
	next, there := takeOver(t, archive)
	add(t, there, lines("second", 5))
	save(t, next)
	second := files(t, dir)[1]
	require.NoError(t, os.Truncate(filepath.Join(dir, second), 200))

	elsewhere := place(t)
	restored, err := copyAt(t, archive, elsewhere).Restore(t.Context())
	require.NoError(t, err)
	require.Len(t, restored.Damaged, 1)
	require.ErrorContains(t, restored.Damaged[0], second)
	require.Equal(t, lines("first", 5), text(t, elsewhere))
}

// TestNoDamageGoesUnnoticed truncates and changes an object at arbitrary places.
func TestNoDamageGoesUnnoticed(t *testing.T) {
	t.Parallel()
	content := lines("first", 50)
	intact := packed(t, content, nil)
	rapid.Check(t, func(t *rapid.T) {
		object := bytes.Clone(intact)
		at := rapid.IntRange(0, len(object)-1).Draw(t, "at")
		if rapid.Bool().Draw(t, "cut") {
			object = object[:at]
		} else {
			object[at] ^= rapid.ByteRange(1, 255).Draw(t, "change")
		}
		var out bytes.Buffer
		_, err := decode(&out, &source{Reader: bytes.NewReader(object)}, session)
		if err == nil {
			require.Equal(t, content, out.String(), "harmless")
		} else {
			require.ErrorIs(t, err, errDamaged)
		}
	})
}

// TestABrokenLineIsNoDamage checks that an archive that cannot be read now is not reported as damaged. If it were, the
// conversation would be considered lost.
func TestABrokenLineIsNoDamage(t *testing.T) {
	t.Parallel()
	intact := packed(t, lines("first", 50), nil)
	for _, fault := range []error{io.ErrUnexpectedEOF, syscall.ECONNRESET, context.DeadlineExceeded} {
		for _, n := range []int{0, 5, 60, len(intact) / 2, len(intact) - 1} {
			broken := io.MultiReader(bytes.NewReader(intact[:n]), iotest.ErrReader(fault))
			_, err := decode(io.Discard, &source{Reader: broken}, session)
			require.ErrorIs(t, err, fault)
			require.NotErrorIs(t, err, errDamaged)
		}
	}
	_, err := decode(brokenDisk{}, &source{Reader: bytes.NewReader(intact)}, session)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NotErrorIs(t, err, errDamaged)
}

// brokenDisk fails every write.
type brokenDisk struct{}

func (brokenDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// smallDisk mounts a file system of a few kilobytes. It skips the test if that is not possible.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := mountSmall(dir); err != nil {
		t.Skipf("cannot mount a small file system here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unmount(dir)) })
	return dir
}

// incompressible returns a transcript of about n bytes that cannot be compressed.
func incompressible(t *testing.T, n int) string {
	t.Helper()
	random := make([]byte, n/2)
	_, err := rand.Read(random)
	require.NoError(t, err)
	text := hex.EncodeToString(random)
	var all strings.Builder
	for text != "" {
		line := text[:min(len(text), 1000)]
		text = text[len(line):]
		all.WriteString(line + "\n")
	}
	return all.String()
}

func TestAFullArchiveKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	archive, path := inDirectory(t, filepath.Join(dir, "archive")), place(t)
	put(t, path, lines("first", 5))
	local := copyAt(t, archive, path)
	save(t, local)
	add(t, path, incompressible(t, 1<<20))
	_, err := local.Save(t.Context())
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, lines("first", 5), archived(t, archive))
	require.Len(t, files(t, dir), 1, "no half file takes the room")
}

func TestAFullHostKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	archive, path := inMemory(t), place(t)
	content := lines("first", 5) + incompressible(t, 1<<20)
	put(t, path, content)
	save(t, copyAt(t, archive, path))

	here := filepath.Join(dir, session+".jsonl")
	put(t, here, lines("first", 5))
	_, err := copyAt(t, archive, here).Restore(t.Context())
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NotErrorIs(t, err, ErrCorrupt)
	require.Equal(t, lines("first", 5), text(t, here))
	require.Equal(t, []string{session + ".jsonl"}, files(t, dir))
}

func TestAnAbandonedSaveLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive, path := inDirectory(t, dir), place(t)
	put(t, path, lines("first", 5))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := copyAt(t, archive, path).Save(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, files(t, dir))
}

// TestATranscriptThatChangesUnderASaveIsNotArchived changes the file between measuring and reading.
func TestATranscriptThatChangesUnderASaveIsNotArchived(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive, path := inDirectory(t, dir), place(t)
	put(t, path, lines("first", 5))
	local := copyAt(t, archive, path)
	measured, err := measure(path)
	require.NoError(t, err)
	put(t, path, lines("other", 5))
	require.ErrorContains(t, local.write(t.Context(), version{1, local.writer}, measured), "the content has")
	require.Empty(t, files(t, dir))
}

// TestKilledWhileRestoring kills processes at any moment of a restore. Afterwards either the old transcript is
// there or the new one, and the next restore succeeds.
func TestKilledWhileRestoring(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes; not with -short")
	}
	dir := t.TempDir()
	archive, path := inDirectory(t, filepath.Join(dir, "archive")), place(t)
	before, after := lines("first", 5), lines("first", 5)+incompressible(t, 8<<20)
	put(t, path, after)
	save(t, copyAt(t, archive, path))
	self, err := os.Executable()
	require.NoError(t, err)
	here := filepath.Join(dir, "home", session+".jsonl")

	// Spread the kills over the time that a restore takes here, with or without the race detector.
	began := time.Now()
	require.NoError(t, exec.CommandContext(t.Context(), self, "-test.run=^$").Run())
	put(t, here, before)
	_, err = copyAt(t, archive, here).Restore(t.Context())
	require.NoError(t, err)
	pace := time.Since(began) / 25

	killed, completed := 0, 0
	for attempt := range 25 {
		put(t, here, before)
		child := exec.CommandContext(t.Context(), self)
		child.Env = append(os.Environ(), restoreVariable+"=file://"+filepath.Join(dir, "archive")+" "+here)
		require.NoError(t, child.Start())
		time.Sleep(time.Duration(attempt) * pace)
		_ = child.Process.Kill()
		_ = child.Wait()
		switch got := text(t, here); got {
		case before:
			killed++
		case after:
			completed++
		default:
			require.Fail(t, "half a transcript", "%d bytes at attempt %d", len(got), attempt)
		}
	}
	leftovers := len(files(t, filepath.Dir(here))) - 1
	t.Logf("25 processes: %d left the old transcript, %d the new one, none half of it; %d temporary files", killed, completed, leftovers)
	require.Positive(t, killed)

	old := time.Now().Add(-2 * leftoverAge)
	for _, name := range files(t, filepath.Dir(here)) {
		if strings.HasPrefix(name, ".restoring-") {
			require.NoError(t, os.Chtimes(filepath.Join(filepath.Dir(here), name), old, old))
		}
	}
	put(t, here, before)
	_, err = copyAt(t, archive, here).Restore(t.Context())
	require.NoError(t, err)
	require.Equal(t, after, text(t, here))
	require.Equal(t, []string{session + ".jsonl"}, files(t, filepath.Dir(here)), "leftovers are gone")
}
