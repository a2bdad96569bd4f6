package agent

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/records/transcripts"
	"github.com/claudeops/claudeops/internal/redact"
)

// Options configure a Runner.
type Options struct {
	Config config.Config
	// Environ is a list of environment variables ("NAME=value"). Agents get those variables that are on the driver's
	// allow list.
	Environ []string
	// CLI starts claude.
	CLI *claude.CLI
	// Policy decides on the calls of agents, and on their sandboxes.
	Policy *guard.Policy
	// Place describes the execution environment of a session's calls for the guard. It gets the session's working
	// directory, the variables that only this session has, and the files that the agent is asked to write (asked).
	Place func(directory string, variables map[string]string, asked []string) (guard.Place, error)
	// Archive holds the transcripts of all conversations.
	Archive *transcripts.Archive
	Records Records
	// Executable is the program that the CLI runs to ask whether a call is allowed. It must contain package shell.
	// If Executable is empty, this process's own program is used.
	Executable string
	// CheckLimit limits the time of all checks of a repository together; 0 for five minutes.
	CheckLimit time.Duration
	// ArchiveFailed is called after a failed operation on the archive; nil for no call. If save is true, a conversation
	// could not be saved. Otherwise a conversation could not be restored.
	ArchiveFailed func(save bool)
	// Mask masks secrets in the files that agents leave.
	Mask   *redact.Redactor
	Logger *slog.Logger
}

// cliVariables lists the beginnings of the names of variables that configure the CLI.
var cliVariables = []string{"CLAUDE_", "ANTHROPIC_"}

// cliProgram is the program in CLAUDEOPS_PASS_ENV that stands for the CLI.
const cliProgram = "claude"

// isForCLI reports whether the CLI itself gets a passed variable.
func isForCLI(entry guard.Passed) bool {
	return entry.Program == cliProgram || entry.Program == "" && slices.ContainsFunc(cliVariables, func(beginning string) bool {
		return strings.HasPrefix(entry.Variable, beginning)
	})
}

// ClaudeOptions returns the driver's options for the configured CLI.
func ClaudeOptions(settings config.Claude, environ []string) claude.Options {
	options := claude.Options{
		Path:       settings.Path,
		Environ:    guard.WithPlainLocales(environ),
		ConfigDir:  settings.ConfigDir,
		MaxRetries: settings.APIRetries,

		Containment: claude.Containment(settings.Containment),
	}
	for _, entry := range settings.PassEnv {
		if isForCLI(entry) {
			options.PassEnv = append(options.PassEnv, entry.Variable)
		} else {
			options.ProgramEnv = append(options.ProgramEnv, entry.Variable)
		}
	}
	if account := settings.Account; account != nil {
		options.User = &claude.User{Name: account.Name, UID: account.UID, GID: account.GID, Groups: account.Groups}
	}
	if settings.Login {
		options.ConfigDir = "" // the CLI then uses the directory that the environment names
	}
	if settings.APIRetries == 0 {
		options.MaxRetries = -1 // 0 would select the driver's default
	}
	return options
}
