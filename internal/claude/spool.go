package claude

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// spoolInterval is the time between two reads of a spool while its CLI prints. After each read that finds nothing,
	// the time doubles, up to maxSpoolInterval. A CLI that waits for its model prints nothing for seconds.
	spoolInterval    = 20 * time.Millisecond
	maxSpoolInterval = 160 * time.Millisecond
	// spoolChunk is the number of bytes that are read at once.
	spoolChunk = 64 << 10
)

// spool is the file that the CLI prints its stream to. A pipe would lose output. One of the measured versions of the
// CLI drops, when it exits, all output that the pipe's reader has not read. With a long line, or on a busy host, the
// result would be lost.
//
// The file has no name. So the system removes the file when this process ends, for whatever reason.
type spool struct {
	file   *os.File
	dir    string
	offset int64 // the number of bytes that were read
	// stopAt is the size of the file at the time of the stop, or notStopped.
	stopAt atomic.Int64
}

const notStopped = -1

// errDiskFull says that the disk has no space for the CLI's output.
var errDiskFull = errors.New("the disk is full")

// newSpool creates a spool in dir. If dir is empty, newSpool uses the system's directory for temporary files. With an
// existing login dir is empty, because this program writes nothing to the login's directory.
func newSpool(dir string) (*spool, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	file, err := os.CreateTemp(dir, "claude-stream-*")
	if err != nil {
		return nil, explainFull(dir, fmt.Errorf("create a file for the CLI's output: %w", err))
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("hide the file for the CLI's output: %w", err)
	}
	output := &spool{file: file, dir: dir}
	output.stopAt.Store(notStopped)
	return output, nil
}

// stopping records the size of the file. Call it just before the CLI is stopped. Output after that may be a reaction to
// the stop.
func (s *spool) stopping() {
	if info, err := s.file.Stat(); err == nil {
		s.stopAt.Store(info.Size())
	}
}

// size returns the number of bytes that were printed.
func (s *spool) size() int64 {
	info, err := s.file.Stat()
	if err != nil {
		return s.offset
	}
	return info.Size()
}

// pastStop reports whether the CLI printed follow's latest output after the stop.
func (s *spool) pastStop() bool {
	stopAt := s.stopAt.Load()
	return stopAt != notStopped && s.offset > stopAt
}

// follow copies the file to w as it grows. It returns when ended is closed and everything is copied.
func (s *spool) follow(ended <-chan struct{}, w io.Writer) error {
	buffer := make([]byte, spoolChunk)
	for interval := spoolInterval; ; {
		select {
		case <-ended:
			return s.drain(buffer, w)
		case <-time.After(interval):
		}
		before := s.offset
		if err := s.drain(buffer, w); err != nil {
			return err
		}
		if interval = min(2*interval, maxSpoolInterval); s.offset > before {
			interval = spoolInterval
		}
	}
}

// drain copies the new content of the file to w. It keeps the offset of the open file, because the CLI writes at that
// offset.
func (s *spool) drain(buffer []byte, w io.Writer) error {
	for {
		n, err := s.file.ReadAt(s.upToStop(buffer), s.offset)
		s.offset += int64(n)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return fmt.Errorf("take in the CLI's output: %w", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the CLI's output: %w", err)
		}
	}
}

// upToStop shortens buffer at the stop, so that no read contains output from before and after it.
func (s *spool) upToStop(buffer []byte) []byte {
	if left := s.stopAt.Load() - s.offset; left > 0 {
		return buffer[:min(int64(len(buffer)), left)]
	}
	return buffer
}

// probe writes to the file to check whether the disk is full. A CLI that cannot print reports no error, so this check
// is needed. probe returns an errDiskFull if the disk is full. If the disk is not full, or if the check fails, it
// returns nil. After probe do not read the spool.
func (s *spool) probe() error {
	end, err := s.file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil //nolint:nilerr // the check failed
	}
	if _, err = s.file.WriteAt(make([]byte, spoolChunk), end); isFull(err) {
		return explainFull(s.dir, err)
	}
	return nil
}

// isFull reports whether err says that a disk, or this user's quota, is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// explainFull returns an errDiskFull if err says that the disk of dir is full. Any other err is returned unchanged.
func explainFull(dir string, err error) error {
	if isFull(err) {
		return fmt.Errorf("the disk of %s is full; make room there: %w: %w", dir, errDiskFull, err)
	}
	return err
}

// close closes the file, which frees its space.
func (s *spool) close() { _ = s.file.Close() }
