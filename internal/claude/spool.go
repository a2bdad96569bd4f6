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
	// spoolInterval is how often a spool is looked at while its CLI runs.
	spoolInterval = 20 * time.Millisecond
	// spoolChunk is how much of it is read at once.
	spoolChunk = 64 << 10
)

// spool is the file that the CLI prints its stream to. It stands in for a pipe, because one of
// the measured versions ends without printing what the reader of a pipe has not taken yet: with a
// long line, or on a busy host, that is the result. What is written to a file is there.
//
// The file has no name, so that nothing of it is left however this process ends.
type spool struct {
	file   *os.File
	dir    string
	offset int64 // up to which it is read
	// stopAt is the length at which the CLI was told to stop, or notStopped.
	stopAt atomic.Int64
}

const notStopped = -1

// errDiskFull says that there is no room for the CLI's output.
var errDiskFull = errors.New("the disk is full")

// newSpool creates a spool in dir, or in the system's directory for temporary files when dir is
// empty, as it is with an existing login: its directory is not this program's to write to.
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

// stopping notes that the CLI is about to be told to stop. Whatever is longer from then on may be
// an answer to that.
func (s *spool) stopping() {
	if info, err := s.file.Stat(); err == nil {
		s.stopAt.Store(info.Size())
	}
}

// size returns how much was printed, read or not.
func (s *spool) size() int64 {
	info, err := s.file.Stat()
	if err != nil {
		return s.offset
	}
	return info.Size()
}

// pastStop reports whether what was handed on last was written after stopping.
func (s *spool) pastStop() bool {
	stopAt := s.stopAt.Load()
	return stopAt != notStopped && s.offset > stopAt
}

// follow hands what is written to the file on to w as it comes, until ended is closed and
// everything is handed on.
func (s *spool) follow(ended <-chan struct{}, w io.Writer) error {
	tick := time.NewTicker(spoolInterval)
	defer tick.Stop()
	buffer := make([]byte, spoolChunk)
	for {
		select {
		case <-ended:
			return s.drain(buffer, w)
		case <-tick.C:
			if err := s.drain(buffer, w); err != nil {
				return err
			}
		}
	}
}

// drain hands on what is there. It leaves the file's own offset alone, which is the CLI's.
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

// upToStop shortens buffer so that no read holds both what came before stopping and after.
func (s *spool) upToStop(buffer []byte) []byte {
	if left := s.stopAt.Load() - s.offset; left > 0 {
		return buffer[:min(int64(len(buffer)), left)]
	}
	return buffer
}

// probe tells whether there is still room for output, by writing some: a CLI that cannot print ends
// as if nothing were wrong. It returns an errDiskFull, or nil when there is room or no telling.
// Nothing may be read after it.
func (s *spool) probe() error {
	end, err := s.file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil //nolint:nilerr // no telling
	}
	if _, err = s.file.WriteAt(make([]byte, spoolChunk), end); isFull(err) {
		return explainFull(s.dir, err)
	}
	return nil
}

// isFull reports whether err says that a disk, or the share of it that this user has, is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// explainFull turns an error that says that the disk of dir is full into an errDiskFull.
func explainFull(dir string, err error) error {
	if isFull(err) {
		return fmt.Errorf("the disk of %s is full; make room there: %w: %w", dir, errDiskFull, err)
	}
	return err
}

// close gives the file's space back.
func (s *spool) close() { _ = s.file.Close() }
