package stream

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
)

// TestTalksAreLimited opens as many streams as one person may, and as all may. A stream ends after its watch has.
func TestTalksAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var watches atomic.Int32
		talks := NewTalks(func(ctx context.Context, _ string, _ func(operations.TalkNews) error) error {
			watches.Add(1)
			<-ctx.Done()
			time.Sleep(time.Second) // it still looks at something
			watches.Add(-1)
			return ctx.Err()
		}, nil)
		serving, end := context.WithCancel(t.Context())
		ask := func(person string) *httptest.ResponseRecorder {
			ctx := access.WithPerson(serving, access.Person{Name: person, Roles: []access.Role{access.Operate}})
			request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			request.SetPathValue("name", "x")
			answer := httptest.NewRecorder()
			talks.Handler().ServeHTTP(answer, request)
			return answer
		}
		var open atomic.Int32
		for i := range maxTalks {
			open.Add(1)
			go func() {
				ask(fmt.Sprint("person-", i/PerPerson))
				open.Add(-1)
			}()
		}
		synctest.Wait()
		require.Equal(t, int32(maxTalks), watches.Load())
		require.Equal(t, http.StatusTooManyRequests, ask("person-0").Code)
		require.Equal(t, http.StatusServiceUnavailable, ask("another").Code)
		end()
		synctest.Wait()
		require.Equal(t, int32(maxTalks), open.Load(), "no stream ends before its watch")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Zero(t, open.Load())
		require.Zero(t, watches.Load())
		require.Zero(t, talks.all)
		require.Empty(t, talks.open)
	})
}
