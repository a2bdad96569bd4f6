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

// Containment is the method by which all processes of an invocation are found and ended. Package process explains the
// modes.
type Containment = process.Mode

// The containment modes.
const (
	ContainmentAuto      = process.ModeAuto
	ContainmentNamespace = process.ModeNamespace
	ContainmentSubreaper = process.ModeSubreaper
	ContainmentGroup     = process.ModeGroup
)

// Options are the settings of all invocations of a CLI.
type Options struct {
	// Path is the executable: a path, or a name that is looked up on the PATH of Environ. Empty is DefaultPath.
	Path string
	// Environ is the operator's environment ("NAME=value"). Only variables on the allow list and in PassEnv are passed to
	// the CLI, and so to the agent's commands.
	Environ []string
	// PassEnv names further variables to pass on; a name that ends in "*" is a prefix.
	PassEnv []string
	// ConfigDir is the CLI's own directory (CLAUDE_CONFIG_DIR), with its transcripts. It must be absolute, and is created
	// if missing. The agent's HOME is "home" below it. The operator puts the files there that the agent's commands need
	// from HOME, such as .kube/config.
	//
	// If it is empty, the CLI uses an existing login: the directory that it finds through Environ, and the HOME of
	// Environ with all its files.
	ConfigDir string
	// MaxRetries limits the CLI's own retries of one API call. Zero is DefaultMaxRetries; a negative number disables them.
	MaxRetries int
	// RetentionDays is the number of days after which the CLI deletes transcripts. A chain can wait that long for an
	// operator and still resume its conversation. Zero is DefaultRetentionDays.
	RetentionDays int
	// Containment is the containment of the CLI and all processes that it starts; empty is ContainmentAuto.
	Containment Containment
	// User is the system user that runs the CLI; nil means the user of this process. For another user, ConfigDir must
	// exist and belong to that user. This package then accesses ConfigDir with that user's rights. Otherwise a symbolic
	// link made by an agent there could lead to a file of this process's own user.
	User *User
	// SpoolDir is the directory for the temporary file with the CLI's output. If it is empty, ConfigDir is used; if
	// both are empty, the system's directory for temporary files.
	SpoolDir string
}

// Sandbox restricts an invocation. Package process explains it.
type Sandbox = process.Sandbox

// User is a system user that can run the CLI.
type User = process.User

// withDefaults returns o with the defaults for zero values.
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

// validate returns an *Error of KindInvalid if o cannot work.
func (o Options) validate() error {
	if o.ConfigDir != "" && !filepath.IsAbs(o.ConfigDir) {
		return invalid("the CLI's directory %q is not an absolute path", o.ConfigDir)
	}
	if o.RetentionDays < 1 {
		return invalid("transcripts must be kept for at least one day, not %d", o.RetentionDays)
	}
	return nil
}
