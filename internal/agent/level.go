package agent

import (
	"fmt"
	"os"

	"github.com/claudeops/claudeops/internal/plant/config"
)

// level says what holds an agent that has passed the guard.
type level string

// The levels, from the strongest to the weakest.
const (
	levelFull   level = "full"        // the kernel's sandbox, and another user
	levelUser   level = "user only"   // another user: Tier 3, or a kernel without a sandbox
	levelKernel level = "kernel only" // the kernel's sandbox, and the worker's user
	levelGuard  level = "guard only"
)

// levelOf returns the level of an agent. The argument confined reports that the kernel's sandbox was in force, and
// separate that the agent had another user than the worker.
func levelOf(confined, separate bool) level {
	switch {
	case confined && separate:
		return levelFull
	case confined:
		return levelKernel
	case separate:
		return levelUser
	}
	return levelGuard
}

// open says what the level leaves open at Tiers 1 and 2, in half a sentence.
func (l level) open() string {
	switch l {
	case levelFull:
		return "agents can reach sockets that their user may open"
	case levelUser:
		return "agents can read what everybody may read, and write what their user may write"
	case levelKernel:
		return "agents can reach sockets of the worker's user, and change the permissions and times of its files; " +
			"set " + config.Prefix + "AGENT_USER to give them a user of their own"
	case levelGuard:
	}
	return "an agent that passes the guard can do what the worker can do"
}

// CheckLevel returns an error if agents have less protection than CLAUDEOPS_SANDBOX requires, because they have the
// worker's user. Whether the kernel's sandbox is available is known when a session starts.
func CheckLevel(cfg config.Config) error {
	asked := cfg.Claude.Sandbox
	separate := asked == config.SandboxRequireFull || asked == config.SandboxRequire && os.Geteuid() == 0
	if !separate || cfg.Claude.HasAgentUser() {
		return nil
	}
	return fmt.Errorf("%sSANDBOX=%s: agents would run as the worker's user, which is %s: set %sAGENT_USER, or take %s",
		config.Prefix, asked, ownUser(), config.Prefix, config.SandboxRequireKernel)
}

// RootAlone reports whether agents run as root, because the worker does and they have no other user.
func RootAlone(cfg config.Config) bool { return os.Geteuid() == 0 && !cfg.Claude.HasAgentUser() }

func ownUser() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return fmt.Sprint("user ", os.Geteuid())
}
