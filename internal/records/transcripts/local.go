package transcripts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"
)

// extent describes the complete lines at the beginning of a transcript.
type extent struct {
	Bytes int64 `json:"bytes"`
	Lines int64 `json:"lines"`
	// SHA256 is hexadecimal.
	SHA256 string `json:"sha256"`
}

// stamp detects changes of a file without reading it. The zero stamp belongs to no file.
type stamp struct {
	size    int64
	changed time.Time
}

// stampOf returns the stamp of the file at path, or the zero stamp if there is no file.
func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, nil
	}
	if err != nil {
		return stamp{}, fmt.Errorf("look at the transcript: %w", err)
	}
	if !info.Mode().IsRegular() {
		return stamp{}, fmt.Errorf("the transcript %s is not a file", path)
	}
	return stamp{size: info.Size(), changed: info.ModTime()}, nil
}

// measure returns the extent of the complete lines of the file at path. A missing file has no lines. measure ignores
// lines that are appended meanwhile.
func measure(path string) (extent, error) {
	file, err := os.Open(path) //nolint:gosec // path is the transcript named by the caller
	if errors.Is(err, fs.ErrNotExist) {
		return measureReader(bytes.NewReader(nil), 0)
	}
	if err != nil {
		return extent{}, fmt.Errorf("read the transcript: %w", err)
	}
	defer closeRead(file)
	info, err := file.Stat()
	if err != nil {
		return extent{}, fmt.Errorf("read the transcript: %w", err)
	}
	end, err := lastLineEnd(file, info.Size())
	if err != nil {
		return extent{}, fmt.Errorf("read the transcript: %w", err)
	}
	return measureReader(file, end)
}

// measureStart returns the extent of the first n bytes of the file at path.
func measureStart(path string, n int64) (extent, error) {
	file, err := os.Open(path) //nolint:gosec // path is the transcript named by the caller
	if err != nil {
		return extent{}, fmt.Errorf("read the transcript: %w", err)
	}
	defer closeRead(file)
	return measureReader(file, n)
}

func measureReader(r io.Reader, n int64) (extent, error) {
	digest, lines := sha256.New(), &lineCounter{}
	read, err := io.Copy(io.MultiWriter(digest, lines), io.LimitReader(r, n))
	if err != nil {
		return extent{}, fmt.Errorf("read the transcript: %w", err)
	}
	return extent{Bytes: read, Lines: lines.n, SHA256: sumOf(digest)}, nil
}

// lastLineEnd returns the end of the last complete line within the first size bytes. It searches backwards,
// because lines can be many megabytes long and need not be read completely.
func lastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	chunk := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(chunk)))
		part := chunk[:end-start]
		if _, err := r.ReadAt(part, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// startsWith reports whether the file at path begins with the content that prefix describes. The argument local is
// the extent of the file's complete lines.
func startsWith(path string, local, prefix extent) (bool, error) {
	if local.Bytes < prefix.Bytes {
		return false, nil
	}
	if local.Bytes == prefix.Bytes {
		return local == prefix, nil
	}
	start, err := measureStart(path, prefix.Bytes)
	return start == prefix, err
}

// lineCounter counts the line breaks written to it.
type lineCounter struct{ n int64 }

// Write implements io.Writer.
func (c *lineCounter) Write(p []byte) (int, error) {
	c.n += int64(bytes.Count(p, []byte{'\n'}))
	return len(p), nil
}

func sumOf(digest hash.Hash) string { return hex.EncodeToString(digest.Sum(nil)) }

// closeRead closes a file that was only read. The error of Close does not matter, because reading has succeeded.
func closeRead(file *os.File) { _ = file.Close() }
