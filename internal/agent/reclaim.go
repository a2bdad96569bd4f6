package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// reclaimAll removes what sessions have left whose workers died, and takes in their conversations. It also removes old
// copies of conversations. Agents that filled the disk must not keep the next worker from its work, so reclaimAll is called
// before anything else. Errors are logged.
func (r *Runner) reclaimAll(ctx context.Context) {
	left, err := r.privates.leftovers()
	for _, one := range left {
		err = errors.Join(err, r.reclaimOne(ctx, one))
	}
	if err = errors.Join(err, r.conversations.prune()); err != nil {
		r.logger.WarnContext(ctx, "what earlier sessions have left could not be removed", "error", err)
	}
}

// reclaim removes what an earlier attempt at a session has left, and takes in the conversation.
func (r *Runner) reclaim(ctx context.Context, sessionID string) error {
	left, err := r.privates.leftover(sessionID)
	if err != nil || left == nil {
		return err
	}
	return r.reclaimOne(ctx, left)
}

func (r *Runner) reclaimOne(ctx context.Context, left *leftover) error {
	if _, err := claude.EndSession(left.id); err != nil { // two processes must never work on one conversation
		return errors.Join(err, left.lock.Close())
	}
	if err := r.takeLeft(ctx, left); err != nil {
		r.logger.WarnContext(ctx, "the conversation of an interrupted session could not be taken in",
			"session_id", left.id, "error", err)
	}
	return left.close()
}

// takeLeft takes in the conversation of a session whose worker died.
func (r *Runner) takeLeft(ctx context.Context, left *leftover) error {
	if left.Inherited.Name == "" {
		return nil
	}
	dir := filepath.Join(r.privates.dir, left.id)
	if r.privates.shared != "" {
		dir = r.privates.shared
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(r.conversations.adopt(ctx, root, left.id, left.Inherited), root.Close())
}
