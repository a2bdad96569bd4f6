package operations

import (
	"context"
	"errors"
	"time"

	"github.com/claudeops/claudeops/internal/records/store"
)

// maxListed limits the running chains that a watch compares.
const maxListed = 1_000

// lookAtList returns how Temporal's list of running chains has changed. It asks a remote server less often than it is
// called.
func (w *Watch) lookAtList(ctx context.Context) ([]Change, error) {
	now := w.backend.Clock()
	if w.begun && now.Before(w.nextList) {
		return nil, nil
	}
	connection, _, err := w.backend.connect(ctx)
	if err != nil {
		return nil, err
	}
	found, err := List(ctx, connection, ChainFilter{Running: true}.query(), maxListed)
	if err != nil {
		return nil, err
	}
	rows := map[string]Row{}
	var changes []Change
	for _, row := range found {
		rows[row.ID] = row
		if before, known := w.rows[row.ID]; w.begun && (!known || changed(before, row)) {
			changes = append(changes, chainChange(row, now))
		}
	}
	for id, before := range w.rows {
		if _, runs := rows[id]; !runs {
			before.Status = "ended"
			changes = append(changes, chainChange(before, now))
		}
	}
	w.rows, w.running, w.incidents = rows, nil, nil
	w.nextList = now.Add(connection.watchInterval())
	return changes, nil
}

func changed(a, b Row) bool {
	return a.RunID != b.RunID || a.Gate != b.Gate || a.Tier != b.Tier || a.CostUSD != b.CostUSD ||
		a.Outcome != b.Outcome
}

func chainChange(row Row, at time.Time) Change {
	kind := ChangeChain
	if row.State() != row.Status {
		kind = ChangeGate
	}
	return Change{kind, row.ID, at, ChainNews{row.Status, row.Outcome, row.Gate}}
}

// watchInterval returns the time between two questions to Temporal about something that is watched.
func (c Connection) watchInterval() time.Duration {
	if c.Local {
		return time.Second
	}
	return remoteInterval
}

func isGone(err error) bool { return errors.Is(err, store.ErrNotFound) }
