package checkout

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// keepFork writes down the commit from which the work in a worktree begins, before an agent can change anything: the
// latest commit that tip and the shared directory have in common. Later the branches say nothing about it, because an
// agent can move each of them, also that of the shared directory. Agents cannot write the file.
func (g git) keepFork(ctx context.Context, tree *Worktree, tip string) error {
	fork, err := g.in(ctx, tree.repository, "merge-base", "HEAD", tip)
	if _, none := errors.AsType[*failedError](err); none {
		return tree.forgetFork()
	}
	if err != nil {
		return err
	}
	tree.fork, tree.begun, tree.session = fork, "", ""
	return tree.writeFork()
}

// keepSession writes down a session that begins, and the commit that the worktree must have; empty if it must have
// none. Commits on another one are older than that.
func (w *Worktree) keepSession(session Session) error {
	begun := cmp.Or(session.From.Commit, w.begun)
	w.Again = w.session == session.ID
	if w.Again && w.begun == begun {
		return nil
	}
	w.begun, w.session = begun, session.ID
	return w.writeFork()
}

// writeFork writes, one on each line, the commit from which the work in a worktree began, the one with which its latest
// session began, and the ID of that session.
func (w *Worktree) writeFork() error {
	next := w.forkFile + ".next"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // a file of the worker
	if err != nil {
		return err
	}
	_, writeErr := file.WriteString(strings.Join([]string{w.fork, w.begun, w.session, ""}, "\n"))
	if err := errors.Join(writeErr, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(next, w.forkFile)
}

// readFork reads what writeFork has written.
func (w *Worktree) readFork() error {
	content, err := os.ReadFile(w.forkFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lines := append(strings.Split(string(content), "\n"), "", "", "")
	w.fork, w.begun, w.session = lines[0], lines[1], lines[2]
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
