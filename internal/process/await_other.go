//go:build unix && !linux

package process

import "os/exec"

// awaitExit waits until cmd's process has ended, and reaps it. On these systems no call waits without reaping. So for a
// moment another process could get the number, and a signal could reach that process.
func awaitExit(cmd *exec.Cmd) error { return ignoreOutcome(cmd.Wait(), cmd) }
