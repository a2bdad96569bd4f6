//go:build unix && !linux

package process

import (
	"errors"
	"runtime"
	"syscall"
)

// EndMarked does nothing, because this system does not show other processes' environments.
func EndMarked(string) (int, error) { return 0, nil }

// DeletedBytes always returns 0, because this system does not show other processes' files.
func DeletedBytes(string) int64 { return 0 }

// PeerIsOurs always returns false, because this system does not show other processes' sockets.
func PeerIsOurs(_, _ Endpoint, _ string) (bool, error) { return false, nil }

func newTree(pid int) Tree { return Tree{PID: pid} }

// Opened always returns true, because this system does not show other processes' parents.
func (Tree) Opened(syscall.Conn) (bool, error) { return true, nil }

// containedWays returns one candidate that is never available.
func containedWays(choice Mode) []candidate {
	refusal := &unavailableError{what: string(choice) + " on " + runtime.GOOS, cause: errors.ErrUnsupported}
	if choice == ModeAuto {
		refusal.what = "namespace and no subreaper on " + runtime.GOOS
	}
	return []candidate{{
		start: func(Spec) (tree, error) { return nil, refusal },
		try:   func() error { return refusal },
	}}
}
