package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// A parent is recorded before its children, and each new record gets a higher number than all earlier records. So if
// records are ordered by number, parents come before their children.
var (
	forwardQuery = `
WITH RECURSIVE line (id) AS (
    SELECT id FROM sessions WHERE id = $1
    UNION ALL
    SELECT child.id FROM sessions child JOIN line ON child.parent_session_id = line.id
)
` + selectSessions + ` WHERE id IN (SELECT id FROM line) ORDER BY id LIMIT ` + mostSessions

	backwardQuery = `
WITH RECURSIVE line (id, parent) AS (
    SELECT id, parent_session_id FROM sessions WHERE id = $1
    UNION ALL
    SELECT above.id, above.parent_session_id FROM sessions above JOIN line ON above.id = line.parent
)
` + selectSessions + ` WHERE id IN (SELECT id FROM line) ORDER BY id DESC LIMIT ` + mostSessions
)

// Forward returns the record with the number id and its descendants, in the order in which they were opened, at most
// 1,000. Parents come before children. A descendant can belong to another chain, which has resumed an earlier chain's
// session. If id is unknown, the error is ErrNotFound.
func (s *Store) Forward(ctx context.Context, id int64) ([]escalation.Session, error) {
	return s.line(ctx, forwardQuery, id)
}

// Backward returns the record with the number id, the parent of that record, the parent of that parent, and so on, at
// most 1,000. If id is unknown, the error is ErrNotFound.
func (s *Store) Backward(ctx context.Context, id int64) ([]escalation.Session, error) {
	return s.line(ctx, backwardQuery, id)
}

func (s *Store) line(ctx context.Context, query string, id int64) ([]escalation.Session, error) {
	sessions, err := collect(ctx, s.db, sessionFields, query, id)
	if err == nil && len(sessions) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("follow the chain of session record %d: %w", id, err)
	}
	return sessions, nil
}

// ofChain selects the rows of the chain $1.
const ofChain = " WHERE chain_id = $1"

// maxSessionsRead limits the sessions of a list that is read at once.
const maxSessionsRead = 1_000

var (
	mostSessions = strconv.Itoa(maxSessionsRead)
	chainQuery   = selectSessions + ofChain + " ORDER BY sequence DESC LIMIT " + mostSessions
	wholeQuery   = "SELECT COUNT(*), COALESCE(SUM(cost_usd), 0), COALESCE(MIN(started_at), 0)," +
		" COALESCE(MAX(CASE WHEN cost_estimated THEN 1 ELSE 0 END), 0) FROM sessions" + ofChain
)

// Chain returns the latest sessions of a chain by sequence, at most 1,000. If there are none yet, or if the chain is
// unknown, the list is empty.
func (s *Store) Chain(ctx context.Context, chainID string) ([]escalation.Session, error) {
	sessions, err := collect(ctx, s.db, sessionFields, chainQuery, chainID)
	if err != nil {
		return nil, fmt.Errorf("read the sessions of chain %q: %w", chainID, err)
	}
	slices.Reverse(sessions)
	return sessions, nil
}

// WholeChain sums up all sessions of a chain.
type WholeChain struct {
	Sessions int
	CostUSD  float64
	// CostEstimated reports whether a part of the cost is an estimate.
	CostEstimated bool
	StartedAt     time.Time
}

// WholeChain sums up all sessions of a chain, also those that Chain leaves out.
func (s *Store) WholeChain(ctx context.Context, chainID string) (whole WholeChain, err error) {
	row := s.db.QueryRowContext(ctx, wholeQuery, chainID)
	if err := row.Scan(&whole.Sessions, &whole.CostUSD, millis{&whole.StartedAt}, &whole.CostEstimated); err != nil {
		return whole, fmt.Errorf("sum up the sessions of chain %q: %w", chainID, err)
	}
	return whole, nil
}
