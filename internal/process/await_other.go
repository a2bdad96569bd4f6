//go:build unix && !linux

package process

import "os/exec"

// awaitExit returns when cmd's process has ended and is reaped. These systems cannot wait without reaping, so for a
// moment another process could get the number.
func awaitExit(cmd *exec.Cmd) error { return ignoreOutcome(cmd.Wait(), cmd) }
