package supervisor

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/agent"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// cliVariables lists the beginnings of the names of variables that configure the CLI.
var cliVariables = []string{"CLAUDE_", "ANTHROPIC_"}

// cliProgram is the program in CLAUDEOPS_PASS_ENV that stands for the CLI.
const cliProgram = "claude"

// isForCLI reports whether the CLI itself gets a passed variable.
func isForCLI(entry guard.Passed) bool {
	return entry.Program == cliProgram || entry.Program == "" && slices.ContainsFunc(cliVariables,
		func(beginning string) bool {
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

// CellOptions says how agents run on this host, as it is configured. The caller adds the CLI, a mask and a logger, as
// far as it needs them.
func CellOptions(cfg config.Config, environ []string, policy *guard.Policy) cell.Options {
	options := cell.Options{
		Driver: ClaudeOptions(cfg.Claude, environ), Policy: policy, Place: (&places{config: cfg, environ: environ}).of,
		Sessions: filepath.Join(cfg.AgentsDir(), "sessions"), Conversations: cfg.ConversationsDir(),
		ConfigDir: cfg.Claude.ConfigDir, Login: cfg.Claude.Login,
		Hidden: hiddenFiles(cfg), Directories: append([]string{cfg.Claude.WorkDir}, cfg.Claude.Repositories...),
		Closed: []string{cfg.State.Dir, filepath.Join(cfg.State.Dir, "up")}, ClosedTree: cfg.State.TranscriptsDir(),
		SessionBytes: int64(cfg.Claude.SessionDisk) << 20, Reserve: cfg.State.Dir,
		Limits: claude.Limits{
			FirstByte: cfg.Claude.FirstByteTimeout, Idle: cfg.Claude.IdleTimeout,
			Grace: cfg.Claude.StopGrace,
		},
	}
	switch {
	case cfg.Claude.Sandbox == config.SandboxOff:
		options.Sandbox = cell.SandboxOff
	case cfg.Claude.Sandbox.Required():
		options.Sandbox = cell.SandboxRequired
	}
	return options
}

// hiddenFiles lists the files that the sandbox hides from agents: the state directory and the database, the transcript
// archive, the settings and the encryption keys.
func hiddenFiles(cfg config.Config) []string {
	hidden := []string{
		cfg.State.Dir, cfg.AgentsDir(), "/etc/claudeops", cfg.State.TranscriptsDir(), cfg.State.EnvFile,
		cfg.Encryption.KeysFile,
	}
	if file := cfg.State.DatabaseFile(); file != "" {
		hidden = append(hidden, file, file+"-wal", file+"-shm", file+"-journal")
	}
	hidden = slices.Concat(hidden, cfg.State.DatabaseCredentials(), cfg.Web.SecretFiles(),
		cfg.Services.Alerts.SecretFiles())
	return slices.DeleteFunc(hidden, func(path string) bool { return path == "" })
}

// AgentOptions says how sessions run on this host, as it is configured. The caller adds to it as to CellOptions.
func AgentOptions(cfg config.Config, environ []string, policy *guard.Policy) agent.Options {
	options := agent.Options{
		Cell: CellOptions(cfg, environ, policy), Catalog: cfg.Services.Catalog,
		WorkDir: cfg.Claude.WorkDir, Repositories: cfg.Claude.Repositories, Scratch: cfg.ScratchDir(),
		Locks: filepath.Join(cfg.State.Dir, "directories"), Reviewed: cfg.Review.Changes == escalation.ReviewRequired,
		Environment: cfg.Claude.Environment,
	}
	if cfg.Claude.Worktrees == config.WorktreesAuto {
		options.Worktrees = cfg.WorktreesDir()
	}
	return options
}
