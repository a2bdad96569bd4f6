package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

func testNews(t *testing.T, database backend) {
	s := database(t)()
	ctx := bounded(t)
	empty, err := s.LatestPosition(ctx)
	require.NoError(t, err)
	require.Zero(t, empty)

	old := mustOpen(t, s, opening("one", "old", 0))
	require.NoError(t, s.AppendEvents(ctx, []escalation.Event{event("one", "old")}))
	start, err := s.LatestPosition(ctx)
	require.NoError(t, err)
	require.Equal(t, store.Position{Events: 1, Sessions: old.ID}, start)
	news, err := s.News(ctx, start, 10)
	require.NoError(t, err)
	require.Equal(t, start, news.Next)
	require.Empty(t, news.Events)
	require.Empty(t, news.Opened)
	require.Len(t, news.Running, 1, "open sessions are there, new or not")

	fresh := mustOpen(t, s, opening("two", "fresh", 0))
	sick := completed(0.02)
	sick.Verdict = &escalation.Verdict{
		Status: escalation.VerdictNeedsHuman, Summary: "jellyfin answers 502", Services: []string{"jellyfin"},
		Issues: []escalation.Issue{{Services: []string{"jellyfin"}, Summary: "it answers 502", Severity: escalation.SeverityWarning}},
	}
	require.NoError(t, s.CloseSession(ctx, "old", sick, noon))
	require.NoError(t, s.AppendDecisions(ctx, []escalation.CallDecision{decision("two", "fresh", "call-1")}))
	require.NoError(t, s.AppendEvents(ctx, []escalation.Event{event("two", "a"), event("two", "b"), event("two", "c")}))
	news, err = s.News(ctx, start, 2)
	require.NoError(t, err)
	require.True(t, news.More)
	require.Equal(t, []string{"a", "b"}, []string{news.Events[0].Key, news.Events[1].Key})
	require.Equal(t, "call-1", news.Calls[0].Call)
	require.Equal(t, []escalation.Session{fresh}, news.Opened)
	require.Equal(t, []escalation.Session{fresh}, news.Running)
	require.Len(t, news.Incidents, 1)
	before := news.Incidents[0]

	news, err = s.News(ctx, news.Next, 2)
	require.NoError(t, err)
	require.False(t, news.More)
	require.Equal(t, "c", news.Events[0].Key)
	require.Equal(t, before, news.Incidents[0], "nothing has happened to it")

	closed, err := s.CloseIncident(ctx, before.ID, store.IncidentClosing{Actor: "ada", Verified: true, At: noon})
	require.NoError(t, err)
	require.Equal(t, "ada (verified)", closed.Closer())
	closed, err = s.Incident(ctx, before.ID)
	require.NoError(t, err)
	require.Equal(t, "ada (verified)", closed.Closer())
	news, err = s.News(ctx, news.Next, 2)
	require.NoError(t, err)
	require.Empty(t, news.Incidents)
}

// testNewsOfWriters reads while several processes write. No row may appear with a number below one that was read
// already.
func testNewsOfWriters(t *testing.T, database backend) {
	open := database(t)
	reader, stores := open(), []*store.Store{open(), open()}
	const each = 40
	group, ctx := errgroup.WithContext(bounded(t))
	for writer := range writers {
		group.Go(func() error {
			for i := range each {
				name := fmt.Sprintf("%d-%d", writer, i)
				if err := stores[writer%2].AppendEvents(ctx, []escalation.Event{event("shared", name+"a"), event("shared", name+"b")}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	seen := map[string]bool{}
	var position store.Position
	for len(seen) < 2*each*writers {
		news, err := reader.News(ctx, position, 7)
		require.NoError(t, err)
		for _, event := range news.Events {
			require.False(t, seen[event.Key], "an event comes once")
			seen[event.Key] = true
		}
		position = news.Next
		latest, err := reader.LatestPosition(ctx)
		require.NoError(t, err)
		if latest.Events == 2*each*writers && position == latest {
			break // what is missing now is lost
		}
	}
	require.NoError(t, group.Wait())
	require.Len(t, seen, 2*each*writers)
}
