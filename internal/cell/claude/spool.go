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
	// spoolInterval is the time between two reads of a spool while the CLI prints. After each read that finds nothing,
	// the time doubles, up to maxSpoolInterval, because a CLI that waits for its model prints nothing for seconds.
	spoolInterval    = 20 * time.Millisecond
	maxSpoolInterval = 160 * time.Millisecond
	// spoolChunk is the number of bytes that are read at once.
	spoolChunk = 64 << 10
)

// spool is the file to which the CLI prints its stream. A pipe could lose output. When one of the measured versions of
// the CLI exits, it drops all output that the pipe's reader has not yet read. With a long line, or on a busy host, that
// would include the result.
//
// The file has no name, so the system removes the file when this process ends, for whatever reason.
type spool struct {
	file   *os.File
	dir    string
	offset int64 // the number of bytes that were read
	// stopAt is the size of the file when the stop of the CLI began. It is notStopped if no stop has begun.
	stopAt atomic.Int64
}

const notStopped = -1

// errDiskFull says that the disk has no space for the CLI's output.
var errDiskFull = errors.New("the disk is full")

// newSpool creates a spool in dir. Agents must have no access to dir: who opens the file can forge a verdict. If dir is
// empty, newSpool uses the system's directory for temporary files.
func newSpool(dir string) (*spool, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	file, err := createUnnamed(dir)
	if err != nil {
		return nil, explainFull(dir, fmt.Errorf("create a file for the CLI's output: %w", err))
	}
	output := &spool{file: file, dir: dir}
	output.stopAt.Store(notStopped)
	return output, nil
}

// createAndUnlink creates a file in dir, and removes its name.
func createAndUnlink(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "claude-stream-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// stopping records the size of the file. Call it just before the CLI is stopped. Output after this size can be a
// reaction to the stop.
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

// pastStop reports whether the output that was read last was printed after the stop of the CLI began.
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

// drain copies the new content of the file to w. It does not move the offset of the open file, because the CLI writes
// at that offset.
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

// upToStop shortens a read buffer that would reach past the stop. So no read contains output from both before and after
// the stop.
func (s *spool) upToStop(buffer []byte) []byte {
	if left := s.stopAt.Load() - s.offset; left > 0 {
		return buffer[:min(int64(len(buffer)), left)]
	}
	return buffer
}

// probe writes to the file to check whether the disk is full. The check is needed, because a CLI that cannot print
// reports no error. If the disk is full, probe returns an error that wraps errDiskFull. If the disk is not full, or if
// the check fails, probe returns nil. Do not read the spool after probe.
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

// explainFull returns an error that wraps errDiskFull if err says that the disk of dir is full. It returns any other
// error unchanged.
func explainFull(dir string, err error) error {
	if isFull(err) {
		return fmt.Errorf("the disk of %s is full; make room there: %w: %w", dir, errDiskFull, err)
	}
	return err
}

// close closes the file, which frees its space.
func (s *spool) close() { _ = s.file.Close() }
