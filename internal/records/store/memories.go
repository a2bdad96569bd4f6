package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

// memoryRow is a memory with its row number.
type memoryRow struct {
	memory.Memory

	row int64
}

// memoryFields lists the columns of the table memories.
func memoryFields(m *memoryRow) []field {
	return []field{
		{"id", &m.row},
		{"kind", &m.Kind},
		{"service_key", serviceKey{&m.Service}},
		{"service", &m.Service},
		{"subject", &m.Subject},
		{"text", &m.Text},
		{"words", derived(func() string { return memory.SearchText(m.Proposal()) })},
		{"status", &m.Status},
		{"trust", &m.Trust},
		{"decided_by", &m.DecidedBy},
		{"decided_at", millis{&m.DecidedAt}},
		{"revision", &m.Revision},
		{"created_at", millis{&m.CreatedAt}},
		{"uses", &m.Uses},
		{"last_used_at", millis{&m.LastUsedAt}},
	}
}

// sourceRow is a source with the row number of its memory.
type sourceRow struct {
	memory.Source

	memory int64
}

// sourceFields lists the columns of the table memory_sources, without the row number.
func sourceFields(s *sourceRow) []field {
	return []field{
		{"memory_id", &s.memory},
		{"act", &s.Act},
		{"trust", &s.Trust},
		{"at", millis{&s.At}},
		{"person", &s.Person},
		{"chain_id", &s.ChainID},
		{"session_id", &s.SessionID},
		{"incidents", jsonText[[]string]{&s.Incidents}},
		{"text", &s.Text},
	}
}

// useFields lists the columns of the table memory_uses that a reader needs.
func useFields(u *memory.Use) []field {
	return []field{{"chain_id", &u.ChainID}, {"session_id", &u.SessionID}, {"at", millis{&u.At}}}
}

const memoryPrefix = "memory-"

// memoryRowOf returns the row number in a memory's ID. If id is not a memory's ID, it returns 0. No row has the number 0.
func memoryRowOf(id string) int64 {
	number, err := strconv.ParseInt(strings.TrimPrefix(id, memoryPrefix), 10, 64)
	if err != nil || !strings.HasPrefix(id, memoryPrefix) {
		return 0
	}
	return number
}

// maxUsesShown limits the uses in a memory's UsedBy.
const maxUsesShown = 20

var (
	selectMemories  = "SELECT " + columns(memoryFields(new(memoryRow))) + " FROM memories"
	memoryQuery     = selectMemories + " WHERE id = $1"
	ofServiceQuery  = selectMemories + " WHERE service_key = $1 AND kind = $2 ORDER BY id"
	memoriesQuery   = selectMemories + " ORDER BY id DESC"
	selectSources   = "SELECT " + columns(sourceFields(new(sourceRow))) + " FROM memory_sources"
	sourcesQuery    = selectSources + " WHERE memory_id = $1 ORDER BY id"
	memoryUsesQuery = "SELECT " + columns(useFields(new(memory.Use))) +
		" FROM memory_uses WHERE memory_id = $1 ORDER BY id DESC LIMIT " + strconv.Itoa(maxUsesShown)
	usedByChainQuery = "SELECT DISTINCT memory_id FROM memory_uses WHERE chain_id = $1"
)

// MemoryFilter selects memories. If all fields are empty, it selects candidates and confirmed memories.
type MemoryFilter struct {
	// Status limits the list to memories with this status. Deleted memories are listed only with StatusDeleted.
	Status memory.Status
	Kind   escalation.MemoryKind
	// Service limits the list to memories of this service.
	Service string
	// Search limits the list to memories that have all words of this text.
	Search string
	// ChainID limits the list to memories that a session of this chain has read.
	ChainID string
}

func (f MemoryFilter) selects(m *memoryRow) bool {
	status := f.Status == m.Status || f.Status == "" && m.Status != memory.StatusDeleted
	return status && (f.Kind == "" || f.Kind == m.Kind) && (f.Service == "" || escalation.SameService(f.Service, m.Service))
}

// Memories returns the memories that filter selects with their sources, the newest first.
func (s *Store) Memories(ctx context.Context, filter MemoryFilter) (found []memory.Memory, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		found, err = s.memories(ctx, tx, filter)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the memories: %w", err)
	}
	return found, nil
}

func (s *Store) memories(ctx context.Context, tx *sql.Tx, filter MemoryFilter) ([]memory.Memory, error) {
	rows, err := collect(ctx, tx, memoryFields, memoriesQuery)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row memoryRow) bool { return !filter.selects(&row) })
	if filter.Search != "" {
		ranks, err := s.searchMemories(ctx, tx, s.dialect.allWords, filter.Search)
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(row memoryRow) bool { _, found := ranks[row.row]; return !found })
	}
	if filter.ChainID != "" {
		used, err := rowNumbers(ctx, tx, usedByChainQuery, filter.ChainID)
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(row memoryRow) bool { return !slices.Contains(used, row.row) })
	}
	return withSources(ctx, tx, rows)
}

func rowNumbers(ctx context.Context, q querier, query string, args ...any) ([]int64, error) {
	return collect(ctx, q, func(id *int64) []field { return []field{{"memory_id", id}} }, query, args...)
}

// sourcesAtOnce is the number of memories whose sources one query reads.
const sourcesAtOnce = 500

// withSources returns memories with their sources.
func withSources(ctx context.Context, q querier, rows []memoryRow) ([]memory.Memory, error) {
	of := map[int64][]memory.Source{}
	for chunk := range slices.Chunk(rows, sourcesAtOnce) {
		places, numbers := make([]string, len(chunk)), make([]any, len(chunk))
		for i := range chunk {
			places[i], numbers[i] = "$"+strconv.Itoa(i+1), chunk[i].row
		}
		query := selectSources + " WHERE memory_id IN (" + strings.Join(places, ", ") + ") ORDER BY id"
		sources, err := collect(ctx, q, sourceFields, query, numbers...)
		if err != nil {
			return nil, err
		}
		for i := range sources {
			of[sources[i].memory] = append(of[sources[i].memory], sources[i].Source)
		}
	}
	found := make([]memory.Memory, len(rows))
	for i := range rows {
		rows[i].Sources = of[rows[i].row]
		found[i] = rows[i].complete()
	}
	return found, nil
}

// complete returns the memory with the fields that no column has.
func (m *memoryRow) complete() memory.Memory {
	m.ID = memoryPrefix + strconv.FormatInt(m.row, 10)
	m.Caution = memory.Caution(m.Proposal())
	return m.Memory
}

// Memory returns one memory with its sources and its latest uses. If id is unknown, the error is ErrNotFound.
func (s *Store) Memory(ctx context.Context, id string) (found memory.Memory, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		row, err := oneMemory(ctx, tx, id)
		if err != nil {
			return err
		}
		found = row.complete()
		found.UsedBy, err = collect(ctx, tx, useFields, memoryUsesQuery, row.row)
		return err
	})
	if err != nil {
		return memory.Memory{}, fmt.Errorf("read memory %q: %w", id, err)
	}
	return found, nil
}

// oneMemory returns a memory with its sources.
func oneMemory(ctx context.Context, q querier, id string) (memoryRow, error) {
	rows, err := collect(ctx, q, memoryFields, memoryQuery, memoryRowOf(id))
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return memoryRow{}, err
	}
	return readSources(ctx, q, rows[0])
}

// readSources returns a memory with its sources.
func readSources(ctx context.Context, q querier, row memoryRow) (memoryRow, error) {
	sources, err := collect(ctx, q, sourceFields, sourcesQuery, row.row)
	for i := range sources {
		row.Sources = append(row.Sources, sources[i].Source)
	}
	return row, err
}

// searchMemories returns the rank of each memory that has the words of text: the lower, the better. The function match
// writes the words as a query of the database: for any of them or for all.
func (s *Store) searchMemories(ctx context.Context, q querier, match func(words []string) string, text string) (map[int64]float64, error) {
	ranks := map[int64]float64{}
	words := memory.SearchWords(text)
	if len(words) == 0 {
		return ranks, nil
	}
	type hit struct {
		row  int64
		rank float64
	}
	fields := func(h *hit) []field { return []field{{"id", &h.row}, {"rank", &h.rank}} }
	hits, err := collect(ctx, q, fields, s.dialect.searchMemories, match(words))
	for _, one := range hits {
		ranks[one.row] = one.rank
	}
	return ranks, err
}

// oldMemoriesQuery selects candidates and deleted memories that were neither proposed nor deleted since $1.
const oldMemoriesQuery = `
SELECT id FROM memories WHERE status IN ('candidate', 'deleted') AND NOT EXISTS (
    SELECT 1 FROM memory_sources WHERE memory_sources.memory_id = memories.id AND memory_sources.at >= $1)`

// RemoveMemories removes the candidates that were last proposed before the given time, and the deleted memories that were last proposed or
// deleted before it. It returns their number.
func (s *Store) RemoveMemories(ctx context.Context, before time.Time) (removed int64, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		old, err := collect(ctx, tx, func(id *int64) []field { return []field{{"id", id}} }, oldMemoriesQuery, before.UnixMilli())
		for _, id := range old {
			for _, query := range []string{
				"DELETE FROM memory_uses WHERE memory_id = $1", "DELETE FROM memory_sources WHERE memory_id = $1",
				"DELETE FROM memories WHERE id = $1",
			} {
				if err == nil {
					_, err = tx.ExecContext(ctx, query, id)
				}
			}
		}
		removed = int64(len(old))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("remove old memories: %w", err)
	}
	return removed, nil
}
