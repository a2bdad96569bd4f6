package claude

import (
	"path/filepath"

	"github.com/claudeops/claudeops/internal/process"
)

// Defaults of Options.
const (
	DefaultPath          = "claude"
	DefaultMaxRetries    = 4
	DefaultRetentionDays = 365
)

// Containment is how far the end of an invocation reaches. Package process explains the modes.
type Containment = process.Mode

// The containments to choose from.
const (
	ContainmentAuto      = process.ModeAuto
	ContainmentNamespace = process.ModeNamespace
	ContainmentSubreaper = process.ModeSubreaper
	ContainmentGroup     = process.ModeGroup
)

// Options is what holds for every invocation of one CLI.
type Options struct {
	// Path is the executable: a file, or a name that is looked up on the PATH of Environ.
	// Empty is DefaultPath.
	Path string
	// Environ is the environment ("NAME=value") to choose from. Only what is on the allow list
	// and in PassEnv gets to the CLI and thus to the agent's commands.
	Environ []string
	// PassEnv names further variables to pass on; a name that ends in "*" is a prefix.
	PassEnv []string
	// ConfigDir is the CLI's own directory (CLAUDE_CONFIG_DIR), which holds its transcripts; it is
	// created when it is missing and must be absolute. The agent's HOME is "home" below it: what its
	// commands need from there, such as .kube/config, the operator puts there. Empty uses an existing
	// login: whatever directory Environ leads the CLI to, and the HOME of Environ with all that is in
	// it. The CLI's output then passes through the system's directory for temporary files, else
	// through this one.
	ConfigDir string
	// MaxRetries caps the CLI's own retries of one API call; zero is DefaultMaxRetries, a negative
	// number is no retry at all.
	MaxRetries int
	// RetentionDays is how long the CLI keeps transcripts. A chain may wait that long for a person.
	// Zero is DefaultRetentionDays.
	RetentionDays int
	// Containment is how the CLI and all that it starts are held together; empty is ContainmentAuto.
	Containment Containment
	// User is whom the CLI runs as; nil is this process's own user. ConfigDir is that user's then, and is
	// there already. What this package does in it, it does with that user's rights, so that no link which an
	// agent makes there leads to a file of this process's own user.
	User *User
	// SpoolDir is where the CLI's output passes through; empty is ConfigDir.
	SpoolDir string
}

// Sandbox is what the kernel keeps an invocation from. Package process explains it.
type Sandbox = process.Sandbox

// User is whom an invocation runs as.
type User = process.User

// withDefaults returns o with the zero values filled in.
func (o Options) withDefaults() Options {
	if o.Path == "" {
		o.Path = DefaultPath
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = DefaultMaxRetries
	}
	if o.RetentionDays == 0 {
		o.RetentionDays = DefaultRetentionDays
	}
	return o
}

// validate returns an *Error of KindInvalid when o cannot work.
func (o Options) validate() error {
	if o.ConfigDir != "" && !filepath.IsAbs(o.ConfigDir) {
		return invalid("the CLI's directory %q is not an absolute path", o.ConfigDir)
	}
	if o.RetentionDays < 1 {
		return invalid("transcripts must be kept for at least one day, not %d", o.RetentionDays)
	}
	return nil
}
