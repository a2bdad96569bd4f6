package supervisor

import (
	"context"
	"errors"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/redact"
	"github.com/claudeops/claudeops/internal/store"
)

// recorder is the store as chains need it. It writes masked words.
type recorder struct {
	*store.Store
	mask *redact.Redactor
}

var _ activities.Recorder = recorder{}

// FindSession implements activities.Recorder.
func (r recorder) FindSession(ctx context.Context, sessionID string) (escalation.Session, bool, error) {
	session, err := r.BySessionID(ctx, sessionID)
	if errors.Is(err, store.ErrNotFound) {
		return escalation.Session{}, false, nil
	}
	return session, err == nil, err
}
