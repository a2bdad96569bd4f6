//go:build !linux

package shell

import (
	"fmt"

	"mvdan.cc/sh/v3/interp"
)

// ulimit is not supported on this system.
func (s *session) ulimit(shell interp.HandlerContext, _ []string) int {
	_, _ = fmt.Fprintln(shell.Stderr, "ulimit: not supported on this system")
	return 1
}
