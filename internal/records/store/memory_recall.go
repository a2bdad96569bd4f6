package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

// maxRecalled limits the memories from which those for a prompt are chosen. It is far more than a prompt has room for.
const maxRecalled = 500

var (
	confirmedQuery = selectMemories + fmt.Sprintf(
		" WHERE status = 'confirmed' ORDER BY COALESCE(last_used_at, decided_at) DESC, id DESC LIMIT %d", maxRecalled)
	recordUseQuery = `
INSERT INTO memory_uses (memory_id, revision, chain_id, first_run_id, session_id, at)
VALUES ($1, (SELECT revision FROM memories WHERE id = $1), $2, $3, $4, $5)
ON CONFLICT (memory_id, session_id) DO NOTHING`
	countUseQuery = "UPDATE memories SET uses = uses + 1, last_used_at = $1 WHERE id = $2"

	// knownQuery selects the memories that the conversation of the session $1 has, and that have not changed since.
	// Those are the memories in the prompts of this session and of all sessions whose conversations it continues.
	knownQuery = fmt.Sprintf(`
WITH RECURSIVE line (session_id, parent) AS (
    SELECT session_id, CASE WHEN continuity = '%[1]s' THEN parent_session_id END FROM sessions WHERE session_id = $1
    UNION ALL
    SELECT above.session_id, CASE WHEN above.continuity = '%[1]s' THEN above.parent_session_id END
    FROM sessions above JOIN line ON above.id = line.parent
)
SELECT memory_uses.memory_id FROM line CROSS JOIN memory_uses CROSS JOIN memories WHERE memory_uses.session_id = line.session_id
    AND memories.id = memory_uses.memory_id AND memories.revision = memory_uses.revision`, escalation.ContinuityResume)
)

// confirmedOfQuery returns a query like confirmedQuery for the memories of some services, and of no service.
func confirmedOfQuery(services int) string {
	return selectMemories + fmt.Sprintf(" WHERE status = 'confirmed' AND service_key IN ('', %s)"+
		" ORDER BY COALESCE(last_used_at, decided_at) DESC, id DESC LIMIT %d", placeholders(1, services), maxRecalled)
}

// RecallMemories returns the text about memories for a prompt, and records which session has read which memory. Only
// confirmed memories are in the text. First come those with words of recall.Text, then those of a service, then the
// more trusted, then those used last. A repetition for the same session returns the same memories, unless they have
// changed.
func (s *Store) RecallMemories(ctx context.Context, recall memory.Recall) (brief memory.Brief, err error) {
	defer s.count(OpMemories, &err)
	err = s.read(ctx, func(tx *sql.Tx) error {
		found, err := s.matching(ctx, tx, recall)
		brief = memory.NewBrief(found)
		return err
	})
	if err == nil && len(brief.IDs) > 0 && recall.SessionID != "" {
		err = s.write(ctx, func(tx *sql.Tx) error { return s.recordUses(ctx, tx, recall, brief.IDs) })
	}
	if err != nil {
		return memory.Brief{}, fmt.Errorf("recall memories for session %q: %w", recall.SessionID, err)
	}
	return brief, nil
}

// matching returns the memories for a prompt, those first that are to be shown first.
func (s *Store) matching(ctx context.Context, q querier, recall memory.Recall) ([]memory.Memory, error) {
	rows, err := confirmedMemories(ctx, q, recall.Services)
	if err != nil {
		return nil, err
	}
	ranks, err := s.searchMemories(ctx, q, s.dialect.anyWord, recall.Text)
	if err != nil {
		return nil, err
	}
	if rows, err = withMatches(ctx, q, rows, ranks, recall.Services); err != nil {
		return nil, err
	}
	known := []int64{}
	if recall.ParentSessionID != "" {
		known, err = rowNumbers(ctx, q, knownQuery, recall.ParentSessionID)
		if err != nil {
			return nil, err
		}
	}
	rows = slices.DeleteFunc(rows, func(row memoryRow) bool {
		_, matches := ranks[row.row]
		return recall.Matching && !matches || slices.Contains(known, row.row)
	})
	slices.SortStableFunc(rows, func(a, b memoryRow) int { return byRelevance(&a, &b, ranks) })
	found := make([]memory.Memory, len(rows))
	for i := range rows {
		found[i] = rows[i].complete()
	}
	return found, nil
}

func confirmedMemories(ctx context.Context, q querier, services []string) ([]memoryRow, error) {
	if len(services) == 0 {
		return collect(ctx, q, memoryFields, confirmedQuery)
	}
	keys := make([]any, len(services))
	for i, service := range services {
		keys[i] = escalation.ServiceKey(service)
	}
	return collect(ctx, q, memoryFields, confirmedOfQuery(len(keys)), keys...)
}

// withMatches adds those memories to rows that the search has found and that were used too long ago to be among them.
func withMatches(
	ctx context.Context, q querier, rows []memoryRow, ranks map[int64]float64, services []string,
) ([]memoryRow, error) {
	if len(rows) < maxRecalled { // these are all
		return rows, nil
	}
	missing := maps.Clone(ranks)
	for i := range rows {
		delete(missing, rows[i].row)
	}
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(missing)), incidentBatch) {
		numbers := make([]any, len(batch))
		for i, number := range batch {
			numbers[i] = number
		}
		query := selectMemories + " WHERE status = 'confirmed' AND id IN (" + placeholders(1, len(batch)) + ")"
		found, err := collect(ctx, q, memoryFields, query, numbers...)
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			if len(services) == 0 || row.Service == "" || escalation.HasService(services, row.Service) {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// byRelevance compares two memories for sorting: by the rank of the search, by whether they are about one service, by
// trust.
func byRelevance(a, b *memoryRow, ranks map[int64]float64) int {
	rankA, rankB := ranks[a.row], ranks[b.row] // negative for a match, and 0 for none
	general := func(m *memoryRow) int {
		if m.Service == "" {
			return 1
		}
		return 0
	}
	if order := cmp.Or(cmp.Compare(rankA, rankB), cmp.Compare(general(a), general(b))); order != 0 ||
		a.Trust == b.Trust {
		return order
	}
	if memory.Least(a.Trust, b.Trust) == b.Trust {
		return -1
	}
	return 1
}

func (s *Store) recordUses(ctx context.Context, tx *sql.Tx, recall memory.Recall, ids []string) error {
	for _, id := range ids {
		row := memoryRowOf(id)
		result, err := tx.ExecContext(ctx, recordUseQuery,
			row, recall.ChainID, recall.FirstRunID, recall.SessionID, recall.At.UnixMilli())
		if err != nil {
			return err
		}
		if fresh, err := result.RowsAffected(); err != nil || fresh == 0 {
			if err != nil {
				return err
			}
			continue
		}
		if _, err := tx.ExecContext(ctx, countUseQuery, recall.At.UnixMilli(), row); err != nil {
			return err
		}
	}
	return nil
}
