package supervisor

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/redact"
)

// TestCallsAreMasked records calls with secrets. One secret is at the position where the record is cut.
func TestCallsAreMasked(t *testing.T) {
	t.Parallel()
	const secret = "not-a-token-of-any-shape-4711"
	database := filepath.Join(t.TempDir(), "ops.db")
	opened, err := store.Open(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, opened.Close()) })
	r := opened.With(store.Hooks{Mask: redact.New([]string{"FLEET_TOKEN=" + secret})})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	actions := []escalation.CallAction{{Kind: escalation.ActionRestart, Service: secret}}
	given := []escalation.CallDecision{
		{
			ChainID: "chain", SessionID: "a", Call: "1", At: now, Tool: "Bash", Rule: secret, Reason: "no " + secret, Actions: actions,
			Input: `{"command":"curl -u ` + secret + ` localhost","password":"correct-horse-9"}`,
		},
		{ChainID: "chain", SessionID: "a", Call: "2", At: now, Tool: "Write", Input: `{"content":"` + strings.Repeat("x", 16<<10-20) + secret + `"}`},
	}
	require.NoError(t, r.AppendDecisions(t.Context(), given))
	require.Contains(t, given[0].Input, secret, "what was given stays")

	kept, err := opened.Decisions(t.Context(), "chain")
	require.NoError(t, err)
	require.JSONEq(t, `{"command":"curl -u [masked: FLEET_TOKEN] localhost","password":"[masked: secret]"}`, kept[0].Input)
	require.Equal(t, "[masked: FLEET_TOKEN]", kept[0].Rule)
	require.Equal(t, "no [masked: FLEET_TOKEN]", kept[0].Reason)
	require.Equal(t, "[masked: FLEET_TOKEN]", kept[0].Actions[0].Service)
	require.NotContains(t, kept[1].Input, secret[:6])

	_, err = r.OpenSession(t.Context(), escalation.Session{ChainID: "chain", SessionID: "a", Tier: 1, StartedAt: now},
		escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
	require.NoError(t, err)
	refusal, err := r.Charge(t.Context(), escalation.Charge{ChainID: "chain", SessionID: "a", Call: "1", At: now, Actions: actions})
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.NoError(t, r.CloseSession(t.Context(), "a", escalation.Report{
		Status:  escalation.SessionCompleted,
		Verdict: &escalation.Verdict{Actions: []escalation.Action{{Kind: escalation.ActionRestart, Service: secret, Succeeded: true}}},
	}, now))
	require.Equal(t, []string{"[masked: FLEET_TOKEN] restart 1 true"}, ledgerOf(t, database))
}

// ledgerOf returns the ledger entries in a database file: service, kind, call, and whether the action succeeded.
func ledgerOf(t *testing.T, database string) (entries []string) {
	t.Helper()
	db, err := sql.Open("sqlite", database)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.QueryContext(t.Context(), "SELECT service, kind, call_id, succeeded FROM ledger ORDER BY id")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var service, kind, call string
		var succeeded bool
		require.NoError(t, rows.Scan(&service, &kind, &call, &succeeded))
		entries = append(entries, fmt.Sprint(service, " ", kind, " ", call, " ", succeeded))
	}
	require.NoError(t, rows.Err())
	return entries
}
