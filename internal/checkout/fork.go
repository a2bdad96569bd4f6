package checkout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// keepFork writes down the commit from which the work in a worktree begins, before an agent can change anything: the latest commit
// that tip and the shared directory have in common. Later the branches say nothing about it, because an agent can move each of
// them, also that of the shared directory. Agents cannot write the file.
func (g git) keepFork(ctx context.Context, tree *Worktree, tip string) error {
	fork, err := g.in(ctx, tree.repository, "merge-base", "HEAD", tip)
	if _, none := errors.AsType[*failedError](err); none {
		return tree.forgetFork()
	}
	if err != nil {
		return err
	}
	next := tree.forkFile + ".next"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // a file of the worker
	if err != nil {
		return err
	}
	_, writeErr := file.WriteString(fork + "\n")
	if err := errors.Join(writeErr, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(next, tree.forkFile)
}

// readFork reads the commit from which the work in a worktree began.
func (w *Worktree) readFork() error {
	content, err := os.ReadFile(w.forkFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	w.fork = strings.TrimSpace(string(content))
	return err
}

// forgetFork is for a worktree that is gone.
func (w *Worktree) forgetFork() error {
	err := os.Remove(w.forkFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
