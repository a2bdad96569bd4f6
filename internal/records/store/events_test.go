package store_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

func event(chainID, key string) escalation.Event {
	return escalation.Event{
		Key: key, ChainID: chainID, Kind: escalation.EventDecision, Severity: escalation.SeverityInfo,
		Message: "about " + key, At: noon,
	}
}

func testEvents(t *testing.T, database backend) {
	s := database(t)()
	var whole escalation.Event
	fill(t, reflect.ValueOf(&whole).Elem(), new(int))
	whole.ChainID = "chain"
	earlier := event("chain", "b")
	earlier.At = noon.Add(-time.Hour) // events are listed in the order of recording, not of time or key
	require.NoError(t, s.AppendEvents(bounded(t), []escalation.Event{whole, event("other", "x"), earlier}))
	changed := event("chain", "b")
	changed.Message = "told otherwise by a retry"
	require.NoError(t, s.AppendEvents(bounded(t), []escalation.Event{changed, event("chain", "a"), event("chain", "a")}))
	require.NoError(t, s.AppendEvents(bounded(t), nil))

	events, err := s.Events(bounded(t), "chain")
	require.NoError(t, err)
	require.Equal(t, []escalation.Event{whole, earlier, event("chain", "a")}, events)
	none, err := s.Events(bounded(t), "unknown")
	require.NoError(t, err)
	require.Empty(t, none)

	var many []escalation.Event
	for i := range 5_001 {
		many = append(many, event("many", fmt.Sprint("many ", i)))
	}
	require.NoError(t, s.AppendEvents(bounded(t), many))
	events, err = s.Events(bounded(t), "many")
	require.NoError(t, err)
	require.Equal(t, many[1:], events, "the latest ones")
}

func testEventsAtomic(t *testing.T, database backend) {
	s := database(t)()
	for i, broken := range []escalation.Event{
		{ChainID: "chain", At: noon}, {Key: "b", At: noon}, {Key: "b", ChainID: "chain"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			err := s.AppendEvents(bounded(t), []escalation.Event{event("chain", "a"), broken})
			require.ErrorIs(t, err, store.ErrInvalid)
			require.ErrorContains(t, err, "event 2 of 2")
			events, err := s.Events(bounded(t), "chain")
			require.NoError(t, err)
			require.Empty(t, events)
		})
	}
}
