package supervisor

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// LocalProcess is the process of a `claudeops up`.
type LocalProcess struct {
	PID int `json:"pid,omitempty"`
	// Namespace identifies what the number counts in: containers have numbers of their own. It is empty where the
	// system has no such namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Unit reports that systemd has started the process, and starts it again if it ends.
	Unit bool `json:"unit,omitempty"`
}

// ThisProcess returns this process. The argument environ is its environment.
func ThisProcess(environ []string) LocalProcess {
	own := LocalProcess{PID: os.Getpid()}
	own.Namespace, _ = os.Readlink("/proc/self/ns/pid")
	for _, entry := range environ {
		if pid, is := strings.CutPrefix(entry, "SYSTEMD_EXEC_PID="); is {
			own.Unit = pid == strconv.Itoa(own.PID)
		}
	}
	return own
}

// CheckSignal says why this process cannot end p by a signal; nil if it can.
func (p LocalProcess) CheckSignal() error {
	switch {
	case p.Unit:
		return errors.New("systemd runs this `claudeops up`, and would start it again; do: systemctl stop claudeops-up")
	case p.PID == 0:
		return errors.New("this `claudeops up` is of an earlier release: end it with Ctrl-C")
	case p.Namespace != ThisProcess(nil).Namespace:
		return errors.New("this `claudeops up` runs in another container: stop that")
	}
	return nil
}
