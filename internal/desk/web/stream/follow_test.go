package stream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// TestFollowersShare checks that the viewers of a chain share one follower, that each of them sees the end, and that
// the follower ends with its last viewer.
func TestFollowersShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var begun, stopped atomic.Int32
		end := make(chan struct{})
		followers := NewFollowers(func(ctx context.Context, id string, observer operations.Observer) (escalation.Chain, error) {
			begun.Add(1)
			defer stopped.Add(1)
			observer.Saw(operations.Snapshot{Chain: escalation.Chain{ID: id}})
			observer.SawNobody()
			observer.SawNobody()
			select {
			case <-end:
				chain := escalation.Chain{ID: id, Outcome: escalation.OutcomeHealthy}
				observer.Saw(operations.Snapshot{Chain: chain})
				return chain, nil
			case <-ctx.Done():
				return escalation.Chain{}, ctx.Err()
			}
		}, nil, func(err error) any { return err.Error() })
		ask := func(ctx context.Context, id string) (*httptest.ResponseRecorder, <-chan struct{}) {
			request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			request.SetPathValue("chain_id", id)
			answer, done := httptest.NewRecorder(), make(chan struct{})
			go func() { defer close(done); followers.Handler().ServeHTTP(answer, request) }()
			return answer, done
		}
		var answers []*httptest.ResponseRecorder
		var viewers []<-chan struct{}
		for range 200 {
			answer, done := ask(t.Context(), "one")
			answers, viewers = append(answers, answer), append(viewers, done)
		}
		gone, leave := context.WithCancel(t.Context())
		_, left := ask(gone, "two")
		synctest.Wait()
		require.EqualValues(t, 2, begun.Load())
		leave()
		<-left
		synctest.Wait()
		require.EqualValues(t, 1, stopped.Load(), "nobody follows the other chain")
		time.Sleep(ping + time.Second)
		close(end)
		for i, done := range viewers {
			<-done
			text := answers[i].Body.String()
			require.Contains(t, text, "event: nobody\n")
			require.Contains(t, text, ": ping\n")
			require.True(t, strings.HasSuffix(text, "\n\n") && strings.Contains(text, `event: end`+"\n"+`data: {"snapshot":{"chain":{"id":"one"`), text)
		}
		require.Empty(t, followers.running)
	})
}

// TestFollowErrors checks that a chain that cannot be followed is an error of the request, and a later error the end of
// the stream.
func TestFollowErrors(t *testing.T) {
	t.Parallel()
	for name, sees := range map[string]bool{"at once": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			followers := NewFollowers(func(_ context.Context, id string, observer operations.Observer) (escalation.Chain, error) {
				if sees {
					observer.Saw(operations.Snapshot{Chain: escalation.Chain{ID: id}})
				}
				return escalation.Chain{}, errors.New("broken")
			}, func(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusTeapot) }, func(err error) any { return err.Error() })
			answer := httptest.NewRecorder()
			followers.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			if sees {
				require.Equal(t, http.StatusOK, answer.Code)
				require.Contains(t, answer.Body.String(), "event: end\ndata: {\"problem\":\"broken\"}\n\n")
				return
			}
			require.Equal(t, http.StatusTeapot, answer.Code)
		})
	}
}
