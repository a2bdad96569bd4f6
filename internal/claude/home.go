package claude

import (
	"errors"
	"os"
	"path/filepath"
)

// homeName is the agent's HOME below Options.ConfigDir.
const homeName = "home"

// ownHome returns the agent's HOME, or "" when it uses an existing login and with it the real one.
//
// It is not the operator's: the CLI's shell would read its start-up files, which set variables that
// no list lets pass, and an agent that may write there would run commands in its operator's shells.
func (c *CLI) ownHome() string {
	if c.options.ConfigDir == "" {
		return ""
	}
	return filepath.Join(c.options.ConfigDir, homeName)
}

// startupFiles are what a shell reads from HOME when it starts.
func startupFiles() []string {
	return []string{
		".profile", ".bash_profile", ".bash_login", ".bashrc", ".bash_logout",
		".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout",
	}
}

// makeDirs creates the CLI's own directory and the agent's HOME in it, for their owner only:
// transcripts hold whatever the agent read. Start-up files are removed from HOME, because one can only
// come from an agent, for those after it.
func (c *CLI) makeDirs() error {
	if c.options.ConfigDir == "" {
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

// cleanHome creates the HOME below configDir, and leaves no start-up file in it. A link that leads
// out of configDir is an error, so that nothing is removed elsewhere.
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
