package claude

import (
	"errors"
	"os"
	"path/filepath"
)

// homeName is the agent's HOME below Options.ConfigDir.
const homeName = "home"

// ownHome returns the agent's own HOME. If the CLI uses an existing login, ownHome returns "", because the login needs
// the operator's HOME.
//
// Otherwise the agent does not get the operator's HOME, for two reasons. First, the CLI's shell would read the start-up
// files in the operator's HOME, and these can set variables outside of the allow list. Second, an agent could write
// commands into these files, which the operator's shells would run.
func (c *CLI) ownHome() string {
	if c.options.ConfigDir == "" {
		return ""
	}
	return filepath.Join(c.options.ConfigDir, homeName)
}

// startupFiles returns the files in HOME that shells read at their start.
func startupFiles() []string {
	return []string{
		".profile", ".bash_profile", ".bash_login", ".bashrc", ".bash_logout",
		".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout",
	}
}

// makeDirs creates the CLI's own directory and the agent's HOME in it. Only the owner of these directories may access
// them, because transcripts contain everything that the agent has read. makeDirs removes shell start-up files from
// HOME, because nobody but an earlier agent can have written such files. Directories of the invocation's own are the
// caller's.
func (c *CLI) makeDirs(i Invocation) error {
	if _, given := i.Env[configVariable]; given || c.options.ConfigDir == "" {
		return nil
	}
	if err := c.asUser(func() error { return os.MkdirAll(c.options.ConfigDir, 0o700) }); err != nil {
		return notStarted("cannot create the CLI's directory: %w", err)
	}
	if err := c.asUser(func() error { return cleanHome(c.options.ConfigDir) }); err != nil {
		return notStarted("cannot prepare the agent's home in the CLI's directory: %w", err)
	}
	return nil
}

// cleanHome creates the agent's HOME below configDir and removes shell start-up files from that HOME. It fails if a
// symbolic link there points out of configDir, so that it removes no file outside.
func cleanHome(configDir string) (err error) {
	root, err := os.OpenRoot(configDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := root.MkdirAll(homeName, 0o700); err != nil {
		return err
	}
	for _, name := range startupFiles() {
		if err := root.RemoveAll(filepath.Join(homeName, name)); err != nil {
			return err
		}
	}
	return nil
}
