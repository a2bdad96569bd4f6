package discover

import (
	"context"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// cliLimit limits the time to ask the CLI for its version. Its file has 200 MB, which a slow disk reads in some
// seconds.
const cliLimit = 20 * time.Second

// CLI is the installed claude CLI, and how it gets at the model.
type CLI struct {
	// Version and Path are empty if there is no usable CLI. Problem then says why.
	Version, Path string
	Problem       string
	// Model is the full name of the model that the CLI takes for the one that was asked for; empty if it does not say
	// it.
	Model string
	// Credentials is the variable or the file with the credentials that agents use as things are set now; empty if they
	// find none.
	Credentials string
	// Login is the file with the login of this user; empty if the user has not logged in.
	Login string
}

// FindCLI looks for the claude CLI, asks it what it takes for a model, and looks for the credentials that agents would
// use. It uses no credentials.
func FindCLI(ctx context.Context, host Host, options claude.Options, model string) CLI {
	ctx, cancel := context.WithTimeout(ctx, cliLimit)
	defer cancel()
	var found CLI
	if cli, err := claude.Locate(ctx, options); err != nil {
		found.Problem = oneLine(err.Error())
	} else {
		found.Version, found.Path, found.Model = cli.Version(), cli.Path(), cli.Names(ctx, model)
	}
	if where, is := claude.Credentials(options); is {
		found.Credentials = where
	}
	dir := host.variable("CLAUDE_CONFIG_DIR")
	if home := host.home(); dir == "" && home != "" {
		dir = "/" + home + "/.claude"
	}
	if filepath.IsAbs(dir) {
		if where, is := claude.Credentials(claude.Options{ConfigDir: dir}); is {
			found.Login = where
		}
	}
	return found
}
