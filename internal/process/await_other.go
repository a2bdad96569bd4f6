//go:build unix && !linux

package process

import "os/exec"

// awaitExit returns when cmd's process has ended and is reaped. Systems without a wait that
// leaves the process in place accept a moment in which its number could be given out again.
func awaitExit(cmd *exec.Cmd) error { return ignoreOutcome(cmd.Wait(), cmd) }
