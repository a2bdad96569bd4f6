package checkout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// rememberFork finds the commit from which the work in a worktree began, and keeps it in a file that agents cannot write.
// Later the branches say nothing about it, because an agent can move each of them, also that of the shared directory.
func (g git) rememberFork(ctx context.Context, tree *Worktree) error {
	content, err := os.ReadFile(tree.forkFile)
	if err == nil && len(content) > 0 {
		tree.fork = strings.TrimSpace(string(content))
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fork, err := g.at(ctx, tree, "merge-base", "main-worktree/HEAD", "HEAD")
	if _, none := errors.AsType[*failedError](err); none {
		return nil // Change says it
	}
	if err != nil {
		return err
	}
	tree.fork = fork
	return os.WriteFile(tree.forkFile, []byte(fork+"\n"), 0o600)
}

// forgetFork is for a worktree that is gone.
func (w *Worktree) forgetFork() error {
	err := os.Remove(w.forkFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
