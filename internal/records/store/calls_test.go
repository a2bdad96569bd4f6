package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

func decision(chainID, sessionID, call string) escalation.CallDecision {
	return escalation.CallDecision{
		ChainID: chainID, SessionID: sessionID, Call: call, Tier: escalation.TierObserve, At: noon, Tool: "Bash",
		Input: `{"command":"docker ps"}`, Allowed: true, Rule: "docker ps",
	}
}

func decisions(t testing.TB, s *store.Store, chainID string) []escalation.CallDecision {
	t.Helper()
	found, err := s.Decisions(bounded(t), chainID)
	require.NoError(t, err)
	return found
}

func testDecisions(t *testing.T, database backend) {
	s := database(t)()
	var whole escalation.CallDecision
	fill(t, reflect.ValueOf(&whole).Elem(), new(int))
	whole.ChainID = "chain"
	earlier := decision("chain", "a", "2")
	earlier.At = noon.Add(-time.Hour) // decisions are listed in the order of recording, not of time
	require.NoError(t, s.AppendDecisions(bounded(t), []escalation.CallDecision{whole, decision("other", "x", "1"), earlier}))
	changed := decision("chain", "a", "2")
	changed.Allowed, changed.Reason = false, "told otherwise by a retry"
	require.NoError(t, s.AppendDecisions(bounded(t), []escalation.CallDecision{
		changed, decision("chain", "a", "1"), decision("chain", "a", "1"), decision("chain", "b", "1"),
	}))
	require.NoError(t, s.AppendDecisions(bounded(t), nil))

	require.Equal(t, []escalation.CallDecision{whole, earlier, decision("chain", "a", "1"), decision("chain", "b", "1")}, decisions(t, s, "chain"))
	require.Empty(t, decisions(t, s, "unknown"))
}

func testDenied(t *testing.T, database backend) {
	s := database(t)()
	var recorded []escalation.CallDecision
	for i, call := range []string{"1", "2", "3", "4"} {
		made := decision("chain-"+call, "a", call)
		made.Allowed, made.At = call == "2", noon.Add(time.Duration(i)*time.Hour)
		recorded = append(recorded, made)
	}
	require.NoError(t, s.AppendDecisions(bounded(t), recorded))
	for _, tt := range []struct {
		since time.Time
		limit int
		want  []escalation.CallDecision
	}{
		{noon, 9, []escalation.CallDecision{recorded[3], recorded[2], recorded[0]}},
		{noon.Add(time.Minute), 9, []escalation.CallDecision{recorded[3], recorded[2]}},
		{noon, 1, recorded[3:]},
		{noon.Add(9 * time.Hour), 9, []escalation.CallDecision{}},
	} {
		found, err := s.Denied(bounded(t), tt.since, tt.limit)
		require.NoError(t, err)
		require.Equal(t, tt.want, found)
	}
}

func testDecisionsAtomic(t *testing.T, database backend) {
	s := database(t)()
	for i, lose := range []func(*escalation.CallDecision){
		func(d *escalation.CallDecision) { d.ChainID = "" },
		func(d *escalation.CallDecision) { d.SessionID = "" },
		func(d *escalation.CallDecision) { d.Call = "" },
		func(d *escalation.CallDecision) { d.Tool = "" },
		func(d *escalation.CallDecision) { d.At = time.Time{} },
	} {
		broken := decision("chain", "a", "2")
		lose(&broken)
		err := s.AppendDecisions(bounded(t), []escalation.CallDecision{decision("chain", "a", "1"), broken})
		require.ErrorIs(t, err, store.ErrInvalid, fmt.Sprint(i))
		require.ErrorContains(t, err, "decision 2 of 2")
		require.Empty(t, decisions(t, s, "chain"))
	}
}

func testDecisionsBounded(t *testing.T, database backend) {
	s := database(t)()
	whole, long := decision("chain", "a", "1"), decision("chain", "a", "2")
	whole.Input = strings.Repeat("x", 16<<10)
	long.Input = strings.Repeat("x", 16<<10-1) + "ü" + strings.Repeat("\xff", 1<<20)
	long.Reason, long.Tool = strings.Repeat("€", 5_000), strings.Repeat("T", 5_000)
	long.Actions = slices.Repeat([]escalation.CallAction{{Kind: escalation.ActionRestart, Service: strings.Repeat("w", 1<<10)}}, 1_000)
	require.NoError(t, s.AppendDecisions(bounded(t), []escalation.CallDecision{whole, long}))

	kept := decisions(t, s, "chain")
	require.Equal(t, whole, kept[0])
	require.True(t, utf8.ValidString(kept[1].Input))
	require.Equal(t, strings.Repeat("x", 16<<10-1)+"… [cut: 3162113 bytes]", kept[1].Input, "what is no UTF-8 is replaced before it is counted")
	require.Equal(t, strings.Repeat("€", 4<<10/3)+"… [cut: 15000 bytes]", kept[1].Reason)
	require.Equal(t, strings.Repeat("T", 500)+"… [cut: 5000 bytes]", kept[1].Tool)
	require.Len(t, kept[1].Actions, escalation.MaxServices)
	require.Equal(t, strings.Repeat("w", 500)+"… [cut: 1024 bytes]", kept[1].Actions[0].Service)
}
