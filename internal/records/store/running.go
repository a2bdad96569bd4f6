package store

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
)

var runningQuery = selectSessions + " WHERE status = $1 ORDER BY id"

// Running returns the open sessions, in the order in which they were opened.
func (s *Store) Running(ctx context.Context) (_ []escalation.Session, err error) {
	defer s.count(OpSweep, &err)
	sessions, err := collect(ctx, s.db, sessionFields, runningQuery, string(escalation.SessionRunning))
	if err != nil {
		return nil, fmt.Errorf("read the sessions that are not closed: %w", err)
	}
	return sessions, nil
}
