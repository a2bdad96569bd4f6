package operations

import (
	"fmt"
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

func ids(incidents []Incident) (all []string) {
	for i := range incidents {
		all = append(all, incidents[i].ID)
	}
	return all
}
