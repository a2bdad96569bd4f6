package cell

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// visitors decides who may ask the guard about a session: the processes of its tree.
type visitors struct {
	session string
	logger  *slog.Logger
	// tree is set before begun is closed.
	tree  claude.Tree
	begun chan struct{}
	// complaint is for the first visitor that is turned away. The others are not logged, because an agent decides how
	// many there are.
	complaint sync.Once
}

func newVisitors(session string, logger *slog.Logger) *visitors {
	return &visitors{session: session, logger: logger, begun: make(chan struct{})}
}

// begin sets the tree of the session.
func (v *visitors) begin(tree claude.Tree) {
	v.tree = tree
	close(v.begun)
}

// errStranger is the guard's answer to processes that are in the tree of no or of another session.
var errStranger = errors.New("the guard answers only the processes of its own session")

// admit waits until the session's tree is known. It returns an error if no process of the tree has opened the
// connection.
func (v *visitors) admit(ctx context.Context, connection net.Conn) error {
	select {
	case <-v.begun:
	case <-ctx.Done():
		return ctx.Err()
	}
	unix, is := connection.(*net.UnixConn)
	if !is {
		return errStranger
	}
	member, err := v.tree.Opened(unix)
	if member && err == nil {
		return nil
	}
	v.complaint.Do(func() {
		v.logger.ErrorContext(ctx, "a process outside of the session has tried to ask the session's guard; it got no "+
			"answer",
			"session_id", v.session, "error", err)
	})
	return errStranger
}
