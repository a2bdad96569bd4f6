package operations

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// TestPagesOfIncidents checks that the pages of a list have each incident once, in the order of the whole list,
// whatever their size, and that a page of resolved ones follows the open ones.
func TestPagesOfIncidents(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	const all = 23
	for i := range all {
		session := s.open(fmt.Sprintf("s%d", i), chaintest.Noon.Add(time.Duration(i)*time.Minute), nil)
		s.close(session, ended(0.1, escalation.VerdictEscalate, fmt.Sprintf("service-%d", i)))
	}
	for i := range 15 {
		_, err := s.records.CloseIncident(t.Context(), fmt.Sprintf("incident-%d", i+1), store.IncidentClosing{
			Actor: "ada", At: chaintest.Noon.Add(time.Hour + time.Duration(i/2)*time.Minute), // two at a time
		})
		require.NoError(t, err)
	}
	incidents := s.operations.Incidents
	for _, filter := range []IncidentFilter{{All: true}, {}, {State: "resolved"}, {All: true, Service: "service-3"}} {
		whole, err := incidents.List(t.Context(), filter)
		require.NoError(t, err)
		for _, size := range []int{1, 4, 8, 9, all, all + 1} {
			filter.Limit = size
			var paged []Incident
			for after, pages := "", 0; pages == 0 || after != ""; pages++ {
				page, err := incidents.Page(t.Context(), filter, after)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.Incidents), size)
				paged, after = append(paged, page.Incidents...), page.Next
				require.LessOrEqual(t, pages, all)
			}
			require.Equal(t, ids(whole), ids(paged), "%+v", filter)
		}
	}
	page, err := incidents.Page(t.Context(), IncidentFilter{All: true, Limit: 3}, "")
	require.NoError(t, err)
	_, err = s.records.CloseIncident(t.Context(), page.Incidents[2].ID, store.IncidentClosing{Actor: "ada", At: chaintest.Noon})
	require.NoError(t, err)
	next, err := incidents.Page(t.Context(), IncidentFilter{Limit: 100}, page.Next)
	require.NoError(t, err)
	require.Len(t, next.Incidents, 8-3-1, "the place of an incident that has gone")
	for _, wrong := range []string{"x", "1", "-1-incident-1", "resolved-1", "resolved-x-incident-1", "1-' OR 1"} {
		_, err := incidents.Page(t.Context(), IncidentFilter{}, wrong)
		require.Equal(t, KindInvalid, KindOf(err), wrong)
	}
}

// TestAcknowledge checks who may be named, how long a snooze may be, and that secrets are masked.
func TestAcknowledge(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.close(s.open("s", chaintest.Noon, nil), ended(0.1, escalation.VerdictEscalate, "web"))
	incidents := s.operations.Incidents
	snoozed, err := incidents.Acknowledge(t.Context(), "1", IncidentAcknowledging{
		Actor: "ada", Verified: true, Note: "a disk is ordered", Snooze: time.Hour,
	})
	require.NoError(t, err)
	require.Equal(t, &escalation.Acknowledgement{
		Actor: "ada", Verified: true, At: chaintest.Noon, Until: chaintest.Noon.Add(time.Hour), Note: "a disk is ordered",
	}, snoozed.Acknowledged)
	seen, err := incidents.Get(t.Context(), "1")
	require.NoError(t, err)
	require.Equal(t, snoozed, seen)
	withdrawn, err := incidents.Acknowledge(t.Context(), "incident-1", IncidentAcknowledging{Actor: "ben", Withdrawn: true})
	require.NoError(t, err)
	require.Nil(t, withdrawn.Acknowledged)
	for _, wrong := range []IncidentAcknowledging{
		{},
		{Actor: "ada", Snooze: time.Second},
		{Actor: "ada", Snooze: -time.Hour},
		{Actor: "ada", Snooze: 1000 * time.Hour},
		{Actor: "ada", Note: strings.Repeat("x", 501)},
	} {
		_, err := incidents.Acknowledge(t.Context(), "1", wrong)
		require.Equal(t, KindInvalid, KindOf(err))
	}
	_, err = incidents.Acknowledge(t.Context(), "9", IncidentAcknowledging{Actor: "ada"})
	require.Equal(t, KindNotFound, KindOf(err))
	_, err = incidents.Close(t.Context(), "1", IncidentClosing{Actor: "ada"})
	require.NoError(t, err)
	_, err = incidents.Acknowledge(t.Context(), "1", IncidentAcknowledging{Actor: "ada"})
	require.Equal(t, KindConflict, KindOf(err))
}

func ids(incidents []Incident) (all []string) {
	for i := range incidents {
		all = append(all, incidents[i].ID)
	}
	return all
}
