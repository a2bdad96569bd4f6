package claude

import (
	"path/filepath"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// Defaults of Options.
const (
	DefaultPath          = "claude"
	DefaultMaxRetries    = 4
	DefaultRetentionDays = 365
)

// Containment is the method that finds and ends all processes of an invocation. Package process explains the modes.
type Containment = process.Mode

// The containment modes.
const (
	ContainmentAuto      = process.ModeAuto
	ContainmentNamespace = process.ModeNamespace
	ContainmentSubreaper = process.ModeSubreaper
	ContainmentGroup     = process.ModeGroup
)

// Options holds the settings of all invocations of a CLI.
type Options struct {
	// Path is the executable: a path, or a name that is looked up on the PATH of Environ. An empty Path means
	// DefaultPath.
	Path string
	// Environ is the operator's environment ("NAME=value"). Only variables on the allow list and in PassEnv are passed
	// to the CLI, and so to the agent's commands.
	Environ []string
	// PassEnv lists further variables to pass to the CLI. A name that ends in "*" is a prefix.
	PassEnv []string
	// ProgramEnv lists variables that not the CLI gets, but programs of the agent (see Passed). A name that ends in "*"
	// is a prefix.
	ProgramEnv []string
	// ConfigDir is the CLI's own directory (CLAUDE_CONFIG_DIR), with its transcripts. ConfigDir must be absolute, and
	// is created if missing. The agent's HOME is "home" below ConfigDir. If the agent's commands need files from HOME,
	// such as .kube/config, the operator puts these files there.
	//
	// If ConfigDir is empty, the CLI uses an existing login. The CLI's directory is then the CLAUDE_CONFIG_DIR of
	// Environ or, without that variable, .claude below HOME. The agent's HOME is the HOME of Environ, with all its
	// files.
	ConfigDir string
	// MaxRetries limits the CLI's own retries of one API call. Zero means DefaultMaxRetries. A negative number disables
	// the retries.
	MaxRetries int
	// RetentionDays is the age in days at which the CLI deletes transcripts. A chain that waits longer than this cannot
	// resume its conversation. Zero means DefaultRetentionDays.
	RetentionDays int
	// Containment is the method that finds and ends the CLI and all processes that it starts. An empty Containment
	// means ContainmentAuto.
	Containment Containment
	// User is the system user that runs the CLI; nil means the user of this process. If it is another user, ConfigDir
	// must exist and belong to that user. This package then accesses ConfigDir with that user's rights. With the rights
	// of this process it could follow an agent's symbolic link to a file of this process's user.
	User *User
	// SpoolDir is the directory for the file with the CLI's output. Agents must have no access to it. If it is empty,
	// the system's directory for temporary files is used.
	SpoolDir string
}

// Sandbox restricts an invocation. Package process explains it.
type Sandbox = process.Sandbox

// User is a system user that can run the CLI.
type User = process.User

// Tree identifies the CLI's process and all processes that it starts.
type Tree = process.Tree

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
