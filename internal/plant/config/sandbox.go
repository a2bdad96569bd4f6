package config

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// Account is a user account of this system.
type Account struct {
	Name     string
	UID, GID int
	// Groups holds the IDs of all groups of the account.
	Groups []int
}

const agentUser = "AGENT_USER"

const (
	// DefaultAgentUser is the user that agents of a worker of root run as. The worker creates it.
	DefaultAgentUser = "claudeops-agent"
	// noAgentUser is a value of CLAUDEOPS_AGENT_USER: agents run as the worker's user.
	noAgentUser = "none"
)

// resolveAccount looks up the user that agents run as. It does not check whether this process has the right to start
// processes as a user that is configured. A claudeops command that only reads chains does not need this right.
func resolveAccount(c *Claude, foreign foreignVariables, p *problems) {
	asked := c.AgentUser
	if c.AgentUser = c.agentUser(foreign.mayChangeUser); !c.HasAgentUser() {
		return
	}
	err := c.FindAccount()
	if _, missing := errors.AsType[user.UnknownUserError](err); missing && asked == "" {
		return // the worker creates it
	}
	p.must(agentUser, err == nil, "be the name of a user of this system, or %s", noAgentUser)
	p.must(agentUser, err != nil || c.Account.UID != 0, "be a user with fewer rights than root")
}

// HasAgentUser reports whether agents run as another user than the worker.
func (c *Claude) HasAgentUser() bool { return c.AgentUser != "" && c.AgentUser != noAgentUser }

// agentUser returns the value of AgentUser. If it is not configured, agents get a user of their own where this process
// may change the user, unless another setting excludes that.
func (c *Claude) agentUser(mayChangeUser bool) string {
	switch {
	case c.AgentUser != "":
		return c.AgentUser
	case mayChangeUser && c.Containment != ContainmentGroup && c.ConfigDir != userLogin:
		return DefaultAgentUser
	}
	return ""
}

// FindAccount sets Account to the account of AgentUser.
func (c *Claude) FindAccount() (err error) {
	c.Account, err = lookUp(c.AgentUser)
	return err
}

// mayChangeUser reports whether this process is root with the capabilities that another user of agents takes: to give
// files away, to use those of others, and to change and kill processes. In a container, root can lack them.
func mayChangeUser() bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || os.Geteuid() != 0 {
		return false // not on Linux, for example
	}
	const needed = 1<<0 | 1<<1 | 1<<5 | 1<<6 | 1<<7 // CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_KILL, CAP_SETGID, CAP_SETUID
	for line := range strings.Lines(string(status)) {
		var held uint64
		if _, err := fmt.Sscanf(line, "CapEff: %x", &held); err == nil {
			return held&needed == needed
		}
	}
	return false
}

func lookUp(name string) (*Account, error) {
	found, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	account := &Account{Name: name}
	if account.UID, err = strconv.Atoi(found.Uid); err != nil {
		return nil, err
	}
	if account.GID, err = strconv.Atoi(found.Gid); err != nil {
		return nil, err
	}
	groups, err := found.GroupIds()
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		number, err := strconv.Atoi(group)
		if err != nil {
			return nil, err
		}
		account.Groups = append(account.Groups, number)
	}
	return account, nil
}

// validateSandbox records settings that contradict a separate user for agents.
func (c Config) validateSandbox(p *problems) {
	if !c.Claude.HasAgentUser() {
		return
	}
	p.must(agentUser, !c.Claude.Login, "come without %sCLAUDE_CONFIG_DIR=%s, which is the login of this program's "+
		"user; "+
		"name the directory of a login that %s has instead", Prefix, userLogin, c.Claude.AgentUser)
	p.must(agentUser, c.Claude.Containment != ContainmentGroup,
		"come without %sCONTAINMENT=%s, which cannot change the user", Prefix, ContainmentGroup)
}
