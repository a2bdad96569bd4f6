package supervisor

import (
	"context"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
)

// recorder opens sessions for chains that do not ask for admission: with their tier's budget, and
// whatever the other limits say.
type recorder struct {
	*store.Store
	policy escalation.Policy
}

var _ activities.Recorder = recorder{}

// OpenSession implements activities.Recorder.
func (r recorder) OpenSession(ctx context.Context, session escalation.Session) (escalation.Session, error) {
	opened, err := r.Store.OpenSession(ctx, session, escalation.AdmissionRequest{}, escalation.Policy{Tiers: r.policy.Tiers})
	return opened.Session, err
}
