package cell

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// reclaimAll removes what sessions have left whose workers died, and takes in their conversations. It also removes old
// copies of conversations. Agents that filled the disk must not keep the next worker from its work, so reclaimAll is
// called before anything else. Errors are logged.
func (h *Host) reclaimAll(ctx context.Context) {
	left, err := h.privates.leftovers()
	for _, one := range left {
		err = errors.Join(err, h.reclaimOne(ctx, one))
	}
	if err = errors.Join(err, h.conversations.prune()); err != nil {
		h.logger.WarnContext(ctx, "what earlier sessions have left could not be removed", "error", err)
	}
}

// Reclaim removes what an earlier attempt at a session, whose process died, has left on this host, and takes in the
// conversation.
func (h *Host) Reclaim(ctx context.Context, sessionID string) error {
	left, err := h.privates.leftover(sessionID)
	if err != nil || left == nil {
		return err
	}
	return h.reclaimOne(ctx, left)
}

func (h *Host) reclaimOne(ctx context.Context, left *leftover) error {
	if _, err := claude.EndSession(left.id); err != nil { // two processes must never work on one conversation
		return errors.Join(err, left.lock.Close())
	}
	if err := h.takeLeft(ctx, left); err != nil {
		h.logger.WarnContext(ctx, "the conversation of an interrupted session could not be taken in",
			"session_id", left.id, "error", err)
	}
	return left.close()
}

// takeLeft takes in the conversation of a session whose worker died.
func (h *Host) takeLeft(ctx context.Context, left *leftover) error {
	if left.Inherited.Name == "" {
		return nil
	}
	dir := filepath.Join(h.privates.dir, left.id)
	if h.privates.shared != "" {
		dir = h.privates.shared
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(h.conversations.adopt(ctx, root, left.id, left.Inherited), root.Close())
}
