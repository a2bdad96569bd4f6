package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// These tests run the cycles of TestMonth for a few days.

// TestUnansweredDays runs hourly cycles for four days. A fault that no agent can repair begins, and no person acts on
// it. The fault becomes worse on the third day. In each state of the fault there must be one repair and one
// notification, with and without gates.
func TestUnansweredDays(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	for name, tt := range map[string]struct {
		gate time.Duration
		says escalation.VerdictStatus
		told map[escalation.NotificationKind]int
	}{
		"without gates":         {0, escalation.VerdictNeedsHuman, map[escalation.NotificationKind]int{escalation.NotifyNeedsHuman: 2}},
		"failed, without gates": {0, escalation.VerdictFailed, map[escalation.NotificationKind]int{escalation.NotifyFailed: 2}},
		"with a gate for a day": { // both gates expire, too
			24 * time.Hour, escalation.VerdictNeedsHuman, map[escalation.NotificationKind]int{escalation.NotifyNeedsHuman: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, records := newMonth(t, false)
			m.policy.Gate.Timeout, m.unrepaired = escalation.Duration(tt.gate), tt.says
			m.faults = []*monthFault{{service: "web", begins: 2, severity: escalation.SeverityWarning, worsens: 50}}
			const cycles = 4 * 24
			m.env.ExecuteWorkflow(monthly, cycles)
			require.NoError(t, m.env.GetWorkflowError())
			require.Len(t, m.climbs["web"], 2, "one as it began, and one as it became worse")
			require.Equal(t, map[escalation.Tier]int{1: cycles, 2: 2, 3: 2}, m.ran)
			told := map[escalation.NotificationKind]int{}
			for _, notification := range m.told {
				told[notification.Kind]++
			}
			require.Equal(t, tt.told, told)
			incidents, err := records.Incidents(t.Context(), store.IncidentFilter{})
			require.NoError(t, err)
			require.Len(t, incidents, 1)
			require.Equal(t, escalation.IncidentWaiting, incidents[0].State)
		})
	}
}

// outages returns how looks end: each of them fails from one hour to another, in three ways.
func outages(hours ...[2]int) func(hour int) escalation.SessionStatus {
	ends := []escalation.SessionStatus{escalation.SessionTimedOut, escalation.SessionBudgetExhausted, escalation.SessionFailed}
	return func(hour int) escalation.SessionStatus {
		if slices.ContainsFunc(hours, func(away [2]int) bool { return away[0] <= hour && hour < away[1] }) {
			return ends[hour%len(ends)]
		}
		return ""
	}
}

// TestDaysOfFailedLooks runs hourly cycles for three days, in which the provider is away for ten and for five hours.
// People are told of each outage once, and with gates that close the chain that told them ends without a person.
func TestDaysOfFailedLooks(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	type kinds = map[escalation.NotificationKind]int
	const cycles = 3 * 24
	failing, asked, resolved := escalation.NotifyFailed, escalation.NotifyNeedsHuman, escalation.NotifyResolved
	for name, tt := range map[string]struct {
		gate     time.Duration
		onHealed escalation.HealedAction
		fault    bool // a fault begins during the first outage
		gates    int
		looks    int // besides those of the cycles
		told     kinds
	}{
		"gates that close": {96 * time.Hour, escalation.HealedClose, false, 2, 2, kinds{asked: 2, resolved: 2}},
		"gates that stay":  {96 * time.Hour, escalation.HealedKeep, false, 1, 0, kinds{asked: 2}}, // its gate expires, too
		"without gates":    {0, escalation.HealedClose, false, 0, 0, kinds{failing: 2}},
		"beside a fault":   {96 * time.Hour, escalation.HealedClose, true, 3, 2, kinds{asked: 4}}, // the gate of the fault expires
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, records := newMonth(t, false)
			m.fails = outages([2]int{5, 15}, [2]int{41, 46})
			m.policy.Gate.Timeout, m.policy.Gate.OnHealed = escalation.Duration(tt.gate), tt.onHealed
			m.faults = nil
			if tt.fault {
				m.faults = []*monthFault{{service: "web", begins: 8, severity: escalation.SeverityWarning}}
			}
			m.env.ExecuteWorkflow(monthly, cycles)
			require.NoError(t, m.env.GetWorkflowError())
			told := kinds{}
			for _, notification := range m.told {
				told[notification.Kind]++
			}
			require.Equal(t, tt.told, told)
			require.Equal(t, cycles+tt.looks, m.ran[escalation.TierObserve])
			for _, input := range m.prompts {
				require.False(t, slices.ContainsFunc(input.Incidents, func(known escalation.Incident) bool { return known.IsFailedLook() }))
			}
			outcomes, gates := m.ends(t, records, cycles)
			require.Equal(t, tt.gates, gates)
			require.GreaterOrEqual(t, outcomes[escalation.OutcomeKnown], 15-2, "all other looks of the outages")

			incidents, err := records.Incidents(t.Context(), store.IncidentFilter{Since: m.begin, Kind: escalation.KindLookFailed})
			require.NoError(t, err)
			require.Len(t, incidents, 1)
			require.Equal(t, escalation.IncidentHealed, incidents[0].Resolution)
			require.Equal(t, 1, incidents[0].Returned)
		})
	}
}

// ends counts the outcomes of the chains of the cycles, and their gates.
func (m *month) ends(t *testing.T, records *store.Store, cycles int) (outcomes map[escalation.Outcome]int, gates int) {
	t.Helper()
	outcomes = map[escalation.Outcome]int{}
	for hour := range cycles {
		events, err := records.Events(t.Context(), fmt.Sprintf("chain-%03d", hour))
		require.NoError(t, err)
		for _, event := range events {
			if event.Kind == escalation.EventGateOpened {
				gates++
			}
			if event.Kind == escalation.EventChainEnded {
				outcomes[outcomeOf(event)]++
			}
		}
	}
	return outcomes, gates
}
