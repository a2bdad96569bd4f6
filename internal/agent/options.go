package agent

import (
	"log/slog"
	"os"

	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/guard"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/transcripts"
)

// Options configure a Runner.
type Options struct {
	Config config.Config
	// Environ is the environment ("NAME=value") from which agents get what they are allowed to have.
	Environ []string
	// CLI starts claude.
	CLI *claude.CLI
	// Policy decides on the calls of agents, and on their sandboxes.
	Policy *guard.Policy
	// Place returns where the calls of a session take place: the directory in which it works, the variables that it gets
	// for itself alone, and the files that it is asked to write.
	Place func(directory string, variables map[string]string, asked []string) (guard.Place, error)
	// Archive holds the transcripts of all conversations.
	Archive *transcripts.Archive
	Records Records
	// Executable is the program that CLIs start to ask whether a call may be made: one with package agentshell in it.
	// Empty is this process's own.
	Executable string
	// Mask masks secrets in the files that agents leave.
	Mask   *redact.Redactor
	Logger *slog.Logger
}

// ClaudeOptions returns the driver's options for the configured CLI.
func ClaudeOptions(settings config.Claude, environ []string) claude.Options {
	options := claude.Options{
		Path:       settings.Path,
		Environ:    environ,
		PassEnv:    settings.PassEnv,
		ConfigDir:  settings.ConfigDir,
		MaxRetries: settings.APIRetries,

		Containment: claude.Containment(settings.Containment),
	}
	if account := settings.Account; account != nil {
		options.User = &claude.User{Name: account.Name, UID: account.UID, GID: account.GID, Groups: account.Groups}
		options.SpoolDir = os.TempDir() // not where links of agents could lead it elsewhere
	}
	if settings.Login {
		options.ConfigDir = "" // the driver then leaves the CLI where the environment leads it
	}
	if settings.APIRetries == 0 {
		options.MaxRetries = -1 // zero is the driver's default
	}
	return options
}
