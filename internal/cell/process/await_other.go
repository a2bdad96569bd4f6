//go:build unix && !linux

package process

import "os/exec"

// awaitExit waits until cmd's process has ended, and reaps the process. Unix systems other than Linux have no call that
// waits without reaping. So for a moment another process could get the process number. A signal to cmd's process could
// then reach that other process.
func awaitExit(cmd *exec.Cmd) error { return ignoreOutcome(cmd.Wait(), cmd) }
