package config

import (
	"os/user"
	"strconv"
)

// Account is a user account of this system.
type Account struct {
	Name     string
	UID, GID int
	// Groups holds the IDs of all groups of the account.
	Groups []int
}

const agentUser = "AGENT_USER"

// resolveAccount looks up the user that agents run as. It does not check whether this process has the right to start
// processes as that user. A starter command that only reads chains does not need this right.
func resolveAccount(c *Claude, p *problems) {
	if c.AgentUser == "" {
		return
	}
	account, err := lookUp(c.AgentUser)
	p.must(agentUser, err == nil, "be the name of a user of this system")
	p.must(agentUser, err != nil || account.UID != 0, "be a user with fewer rights than root")
	if err == nil {
		c.Account = account
	}
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
	if c.Claude.AgentUser == "" {
		return
	}
	p.must(agentUser, !c.Claude.Login, "come without %sCLAUDE_CONFIG_DIR=%s, which is the login of this program's user; "+
		"name the directory of a login that %s has instead", Prefix, userLogin, c.Claude.AgentUser)
	p.must(agentUser, c.Claude.Containment != ContainmentGroup,
		"come without %sCONTAINMENT=%s, which cannot change the user", Prefix, ContainmentGroup)
}
