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

// memoryOutlineFields lists the columns of the table memories by which memories are selected and sorted.
func memoryOutlineFields(m *memoryRow) []field {
	return []field{{"id", &m.row}, {"kind", &m.Kind}, {"service", &m.Service}, {"status", &m.Status}}
}

// id returns the memory's ID.
func (m *memoryRow) id() string { return memoryPrefix + strconv.FormatInt(m.row, 10) }

// waits returns 0 if the memory waits for a person, and 1 if it does not.
func (m *memoryRow) waits() int {
	if m.Status == memory.StatusCandidate {
		return 0
	}
	return 1
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

// memoryRowOf returns the row number in a memory's ID. If id is not a memory's ID, it returns 0. No row has the number
// 0.
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
	selectMemories = "SELECT " + columns(memoryFields(new(memoryRow))) + " FROM memories"
	memoryQuery    = selectMemories + " WHERE id = $1"
	ofServiceQuery = selectMemories + " WHERE service_key = $1 AND kind = $2 ORDER BY id"
	memoriesQuery  = selectMemories + " ORDER BY id DESC"
	// memoryOutlineQuery reads what memories are selected and sorted by.
	memoryOutlineQuery = "SELECT " + columns(memoryOutlineFields(new(memoryRow))) + " FROM memories ORDER BY id DESC"
	selectSources      = "SELECT " + columns(sourceFields(new(sourceRow))) + " FROM memory_sources"
	sourcesQuery       = selectSources + " WHERE memory_id = $1 ORDER BY id"
	memoryUsesQuery    = "SELECT " + columns(useFields(new(memory.Use))) +
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
	// After is where a page begins, and Limit is the maximum number of memories in it; 0 means all.
	After ListPlace
	Limit int
}

// MemoryPage is a page of memories.
type MemoryPage struct {
	Memories []memory.Memory
	// Last is the place after the last of Memories. More reports whether others follow.
	Last ListPlace
	More bool
	// Total counts the memories that the filter selects.
	Total int
}

func (f MemoryFilter) selects(m *memoryRow) bool {
	status := f.Status == m.Status || f.Status == "" && m.Status != memory.StatusDeleted
	return status && (f.Kind == "" || f.Kind == m.Kind) && (f.Service == "" ||
		escalation.SameService(f.Service, m.Service))
}

// Memories returns the memories of a page.
func (s *Store) Memories(ctx context.Context, filter MemoryFilter) ([]memory.Memory, error) {
	page, err := s.MemoryPage(ctx, filter)
	return page.Memories, err
}

// MemoryPage returns a page of the memories that filter selects, with their sources: the candidates first, and the
// newest first of each.
func (s *Store) MemoryPage(ctx context.Context, filter MemoryFilter) (page MemoryPage, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		page, err = s.memoryPage(ctx, tx, filter)
		return err
	})
	if err != nil {
		return MemoryPage{}, fmt.Errorf("read the memories: %w", err)
	}
	return page, nil
}

func (s *Store) memoryPage(ctx context.Context, tx *sql.Tx, filter MemoryFilter) (page MemoryPage, err error) {
	outline, err := s.selectedMemories(ctx, tx, filter)
	if err != nil {
		return page, err
	}
	id := func(row memoryRow) string { return row.id() }
	begin, end := beginOf(outline, filter.After, id), len(outline)
	if filter.Limit > 0 {
		end = min(end, begin+filter.Limit)
	}
	page.Total, page.More = len(outline), end < len(outline)
	if begin < end {
		page.Last = ListPlace{end, id(outline[end-1])}
	}
	page.Memories, err = wholeMemories(ctx, tx, outline[begin:end])
	return page, err
}

// selectedMemories returns the outlines of the memories that filter selects, in the order of their list.
func (s *Store) selectedMemories(ctx context.Context, tx *sql.Tx, filter MemoryFilter) ([]memoryRow, error) {
	rows, err := collect(ctx, tx, memoryOutlineFields, memoryOutlineQuery)
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
	slices.SortStableFunc(rows, func(a, b memoryRow) int { return a.waits() - b.waits() })
	return rows, nil
}

func rowNumbers(ctx context.Context, q querier, query string, args ...any) ([]int64, error) {
	return collect(ctx, q, func(id *int64) []field { return []field{{"memory_id", id}} }, query, args...)
}

// sourcesAtOnce is the number of memories whose sources one query reads.
const sourcesAtOnce = 500

// wholeMemories returns the memories of outlines, in the same order, with their sources.
func wholeMemories(ctx context.Context, q querier, outline []memoryRow) ([]memory.Memory, error) {
	whole, of := map[int64]memoryRow{}, map[int64][]memory.Source{}
	for chunk := range slices.Chunk(outline, sourcesAtOnce) {
		places, numbers := make([]string, len(chunk)), make([]any, len(chunk))
		for i := range chunk {
			places[i], numbers[i] = "$"+strconv.Itoa(i+1), chunk[i].row
		}
		in := " IN (" + strings.Join(places, ", ") + ") ORDER BY id"
		rows, err := collect(ctx, q, memoryFields, selectMemories+" WHERE id"+in, numbers...)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			whole[row.row] = row
		}
		sources, err := collect(ctx, q, sourceFields, selectSources+" WHERE memory_id"+in, numbers...)
		if err != nil {
			return nil, err
		}
		for i := range sources {
			of[sources[i].memory] = append(of[sources[i].memory], sources[i].Source)
		}
	}
	found := make([]memory.Memory, len(outline))
	for i := range outline {
		row := whole[outline[i].row]
		row.Sources = of[row.row]
		found[i] = row.complete()
	}
	return found, nil
}

// complete returns the memory with the fields that no column has.
func (m *memoryRow) complete() memory.Memory {
	m.ID = m.id()
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
func (s *Store) searchMemories(
	ctx context.Context, q querier, match func(words []string) string, text string,
) (map[int64]float64, error) {
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

// RemoveMemories removes the candidates that were last proposed before the given time, and the deleted memories that
// were last proposed or deleted before it. It returns their number.
func (s *Store) RemoveMemories(ctx context.Context, before time.Time) (removed int64, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		old, err := collect(ctx, tx, func(id *int64) []field { return []field{{"id", id}} }, oldMemoriesQuery,
			before.UnixMilli())
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
