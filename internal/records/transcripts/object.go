package transcripts

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// format identifies the version of the header's format.
	format = "claudeops-transcript/1"
	// headerMagic begins a frame that zstd decoders skip (RFC 8878, section 3.1.2).
	headerMagic = 0x184D2A5C
	// maxHeader limits the header, in bytes. A valid header is much smaller.
	maxHeader = 4 << 10
	// maxWindow limits the memory for decompression, in bytes, and packWindow that for compression. The zstd program
	// unpacks windows of 8 MB without an option.
	maxWindow  = 64 << 20
	packWindow = 8 << 20
)

// header describes the content of an object. A reader compares the content with its header.
type header struct {
	Format    string `json:"format"`
	SessionID string `json:"session_id"`
	extent
}

// errDamaged means that an object has no header, or that its content does not match the header. Errors with details
// wrap errDamaged.
var errDamaged = errors.New("damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errDamaged, fmt.Errorf(format, args...))
}

// encode writes an object: the header and the compressed content. It fails if content does not match the
// header.
func encode(w io.Writer, h header, content io.Reader) error {
	encoded, err := json.Marshal(h)
	if err != nil {
		return err
	}
	frame := binary.LittleEndian.AppendUint32(nil, headerMagic)
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(encoded))) //nolint:gosec // a few hundred bytes
	if _, err := w.Write(append(frame, encoded...)); err != nil {
		return err
	}
	packer, err := newPacker(w, h.Bytes)
	if err != nil {
		return err
	}
	if err := copyExtent(packer, content, h.extent); err != nil {
		return errors.Join(err, packer.Close())
	}
	return packer.Close()
}

// newPacker returns a compressor for content of the given size. It uses one goroutine and little memory, because agents
// run at the same time. The reply of a turn waits for the last save. So the window is no larger than the content, and
// the level is the fastest: it is twice as fast for short conversations, and makes 9 % more of 3 MB of source code.
func newPacker(w io.Writer, size int64) (*zstd.Encoder, error) {
	window := zstd.MinWindowSize
	for int64(window) < size && window < packWindow {
		window *= 2
	}
	return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(window),
		zstd.WithEncoderLevel(zstd.SpeedFastest))
}

// decodeHeader reads only the header of sessionID's object.
func decodeHeader(r *source, sessionID string) (header, error) {
	var frame struct{ Magic, Size uint32 }
	if err := binary.Read(r, binary.LittleEndian, &frame); err != nil {
		return header{}, r.blame(err)
	}
	if frame.Magic != headerMagic || frame.Size > maxHeader {
		return header{}, damaged("it does not begin with a header")
	}
	encoded := make([]byte, frame.Size)
	if _, err := io.ReadFull(r, encoded); err != nil {
		return header{}, r.blame(err)
	}
	var h header
	if err := json.Unmarshal(encoded, &h); err != nil {
		return header{}, damaged("header: %w", err)
	}
	switch {
	case h.Format != format:
		return header{}, damaged("its format is %q, and this version reads %q", h.Format, format)
	case h.SessionID != sessionID:
		return header{}, damaged("it holds the conversation %q", h.SessionID)
	}
	return h, nil
}

// decode reads an object and writes its content to w. If the content does not match the header, decode fails. In that
// case a part of the content can already be in w.
func decode(w io.Writer, r *source, sessionID string) (header, error) {
	h, err := decodeHeader(r, sessionID)
	if err != nil {
		return header{}, err
	}
	unpacker, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return header{}, err
	}
	defer unpacker.Close()
	target := &sink{Writer: w}
	err = copyExtent(target, unpacker, h.extent)
	switch {
	case target.err != nil: // a fault of the local disk, not of the object
		return header{}, target.err
	case err != nil:
		return header{}, r.blame(err)
	}
	return h, nil
}

// copyExtent copies content to w. If content does not have the extent want, copyExtent fails.
func copyExtent(w io.Writer, content io.Reader, want extent) error {
	digest, lines := sha256.New(), &lineCounter{}
	written, err := io.Copy(io.MultiWriter(w, digest, lines), io.LimitReader(content, want.Bytes+1))
	if err != nil {
		return err
	}
	got := extent{Bytes: written, Lines: lines.n, SHA256: sumOf(digest)}
	if got != want {
		return fmt.Errorf("the content has %d bytes, %d lines and hash %s, and must have %d, %d and %s",
			got.Bytes, got.Lines, got.SHA256, want.Bytes, want.Lines, want.SHA256)
	}
	return nil
}

// source reads a stored object and remembers the storage's read error. With this error the caller can distinguish an
// invalid object from an object that cannot be read now.
type source struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// blame returns the reason why a read failed with err. If the storage reported an error, the reason is that error. If
// it reported none, the reason is errDamaged.
func (s *source) blame(err error) error {
	if s.err != nil {
		return s.err
	}
	return damaged("%w", err)
}

// sink is a writer that remembers its write error.
type sink struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil {
		s.err = err
	}
	return n, err
}
