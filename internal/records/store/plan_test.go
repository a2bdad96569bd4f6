package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// plannedQueries lists the queries that must not become slower with the number of recorded chains.
var plannedQueries = map[string]string{
	"forward":    forwardQuery,
	"backward":   backwardQuery,
	"session id": selectSessions + " WHERE session_id = $1",
	"chain":      chainQuery,
	"since":      selectSessions + " WHERE started_at >= $1 ORDER BY started_at",
	"events":     eventsQuery,
	"window":     windowQuery,
	"running":    runningQuery,
	"delivered":  deliveredQuery,
	"replaced":   replacedQuery,

	"a session":                sessionQuery,
	"children of a session":    childrenQuery,
	"events of a session":      sessionEventsQuery,
	"calls of a session":       sessionCallsQuery,
	"number of calls":          countCallsQuery,
	"actions on services":      actionsSinceQuery,
	"latest actions":           latestActionsQuery,
	"actions on a service":     actionsOfQuery,
	"actions of a session":     sessionActionQuery,
	"names of services":        namedServicesQuery,
	"costs by time":            quarterQueries[0],
	"costs by kind":            kindQueries[0],
	"replaced, by time":        quarterQueries[1],
	"replaced, by kind":        kindQueries[1],
	"what a day has cost":      daySpentQuery,
	"what a chain has cost":    chainSpentQuery,
	"other chains that repair": escalationsQuery,
	"whether a chain repairs":  escalatedQuery,
	"the ledger":               ledgerQuery,
	"who repairs services":     busyQuery(2),
	"the release of a chain":   releaseQuery,
	"the release of one lock":  releaseLockQuery,
	"what a session locks":     claimedQuery,
	"what a session did":       sessionLedgerQuery,
	"what became of an action": succeededQuery,
	"a charge that returns":    returnQuery,
	"an incident":              incidentQuery,
	"open incidents":           openQuery,
	"outline of open ones":     outlineQuery,
	"counts of open ones":      openCountsQuery,
	"resolved incidents":       resolvedQuery,
	"incidents found healed":   healedQuery,
	"chains of incidents":      chainsOfQuery(2),
	"several incidents":        numberedQuery(2),
	"incidents of a chain":     incidentsOfQuery,
	"chains at work":           atWorkQuery,
	"what chains' work cost":   chainCostsQuery(2),
	"what was replaced of it":  replacedCostsQuery(2),
	"a chain that has gone":    abandonQuery,
	"earlier chains of an ID":  endEarlierQuery,
	"what a repair did":        attemptQuery,
	"an incident that is left": leaveQuery,
	"earlier repairs":          repairsQuery,
	"calls":                    callsQuery,
	"whether a chain is old":   isOldQuery,
	"sessions of a chain":      sessionIDsQuery,
	"whether a duty is taken":  takenQuery,
	"new events":               newEventsQuery,
	"new calls":                newCallsQuery,
	"new sessions":             newSessionsQuery,
	"marks of incidents":       marksQuery,
	"a memory":                 memoryQuery,
	"the same memory":          ofServiceQuery,
	"sources of a memory":      sourcesQuery,
	"uses of a memory":         memoryUsesQuery,
	"what a chain has read":    usedByChainQuery,
	"what a talk knows":        knownQuery,
	"memories for a prompt":    confirmedOfQuery(2),
	"candidates":               candidatesQuery,
	"old proposals":            forgetProposalsQuery,

	"the turns of a talk":       turnsQuery,
	"an answer of a talk":       answerQuery,
	"a message of a talk":       repeatsQuery,
	"a message by its ID":       byMessageQuery,
	"the latest talks":          latestTurnsQuery,
	"talks of a person":         talksOfQuery,
	"a turn":                    turnQuery,
	"a message":                 messageQuery,
	"unanswered messages":       unansweredQuery,
	"the latest answer":         latestAnswerQuery,
	"whether a session replied": keptQuery,
	"confirmed proposals":       confirmationsQuery,
	"gates that wait":           gatesQuery,
	"chains at work for a talk": workingSessionsQuery,
	"chains since yesterday":    recentSessionsQuery,
	"old sessions of talks":     oldTalkSessionsQuery,
}

// TestQueriesUseIndexes checks SQLite's plans of the queries. No query may read a whole table or build a temporary
// index.
func TestQueriesUseIndexes(t *testing.T) {
	t.Parallel()
	s := single(t, filepath.Join(t.TempDir(), "ops.db"))
	for name, query := range plannedQueries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := planOf(t, s, query)
			require.NotRegexp(t, "(?m)^SCAN (sessions|child|above|events|replaced_reports|notifications|ledger|service_locks|calls|incidents|incident_chains|duties|memories|memory_sources|memory_uses|talk_turns|talk_confirmations)|AUTOMATIC", steps)
			require.NotEmpty(t, steps)
		})
	}
}

// TestTurnsUseTheirIndex checks that the time to read turns does not depend on the length of their conversation.
func TestTurnsUseTheirIndex(t *testing.T) {
	t.Parallel()
	s := single(t, filepath.Join(t.TempDir(), "ops.db"))
	for query, want := range map[string]string{
		turnQuery: "(conversation_id=? AND turn=?)", answerQuery: "(conversation_id=? AND turn=?)",
		missedQuery: "(conversation_id=? AND turn>? AND turn<?)", turnsQuery: "(conversation_id=?)",
		latestTurnQuery: "(conversation_id=?)", latestAnswerQuery: "(conversation_id=?)", recalledTurnsQuery: "(conversation_id=?)",
		messageQuery: "(message_id=? AND conversation_id=?", repeatsQuery: "(conversation_id=? AND message_key=?)",
	} {
		steps := planOf(t, s, query)
		require.Contains(t, steps, want, query)
		if strings.Contains(query, "ORDER BY turn") {
			require.NotContains(t, steps, "TEMP B-TREE", query)
		}
	}
}

// planOf returns SQLite's plan of a query.
func planOf(t *testing.T, s *Store, query string) (steps string) {
	t.Helper()
	rows, err := s.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, []any{1, 2, 3, 4, 5, 6, 7}[:arguments(query)]...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps += step + "\n"
	}
	require.NoError(t, rows.Err())
	return steps
}

// TestPostgresQueriesUseIndexes checks PostgreSQL's plans of the queries. The tables are empty, so a setting of the
// planner makes it read a whole table only if no index helps.
func TestPostgresQueriesUseIndexes(t *testing.T) {
	t.Parallel()
	s := openPostgres(t, postgrestest.Database(t), "enable_seqscan=off")
	for name, query := range plannedQueries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, err := s.db.QueryContext(t.Context(), "EXPLAIN "+query, []any{1, 2, 3, 4, 5, 6, 7}[:arguments(query)]...)
			require.NoError(t, err)
			defer func() { require.NoError(t, rows.Close()) }()
			var step string
			for rows.Next() {
				require.NoError(t, rows.Scan(&step))
				require.NotContains(t, step, "Seq Scan on", "%s", query)
			}
			require.NoError(t, rows.Err())
			require.NotEmpty(t, step)
		})
	}
}

// arguments returns how many arguments query takes.
func arguments(query string) int {
	var count int
	for strings.Contains(query, fmt.Sprintf("$%d", count+1)) {
		count++
	}
	return count
}
