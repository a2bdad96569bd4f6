package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// ledgerOfRefusals is a fake database. While fail is set, every write returns that error.
type ledgerOfRefusals struct {
	mu   sync.Mutex
	fail error
	got  []string
}

func (l *ledgerOfRefusals) append(_ context.Context, events []escalation.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	for _, event := range events {
		l.got = append(l.got, event.Key)
	}
	return nil
}

func (l *ledgerOfRefusals) away(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

func (l *ledgerOfRefusals) recorded() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.got)
}

var errBusy = fmt.Errorf("the database is away: %w", context.DeadlineExceeded)

func TestAuditRecordsWhatIsHandedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		require.True(t, store.IsTransient(errBusy))
		database := &ledgerOfRefusals{fail: errBusy}
		audit := newAudit(database.append, slog.New(slog.DiscardHandler))
		stop := inBackground(t.Context(), audit.run)
		for i := range auditBacklog + 10 {
			audit.add(escalation.Event{Key: fmt.Sprint(i)}) // must not wait, whatever the database does
		}
		time.Sleep(time.Minute)
		require.Zero(t, database.recorded())
		database.away(nil)
		time.Sleep(2 * auditPause)
		require.GreaterOrEqual(t, database.recorded(), auditBacklog, "what had room is recorded when the database is back")
		require.Less(t, database.recorded(), auditBacklog+10, "what had none is not kept in memory")
		stop()
	})
}

func TestAuditIsDrainedWhenTheWorkerStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database := &ledgerOfRefusals{fail: errBusy}
		audit := newAudit(database.append, slog.New(slog.DiscardHandler))
		stop := inBackground(t.Context(), audit.run)
		for i := range 10 {
			audit.add(escalation.Event{Key: fmt.Sprint(i)})
		}
		synctest.Wait()
		time.AfterFunc(2*time.Second, func() { database.away(nil) })
		stop()
		require.ElementsMatch(t, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, database.got)
	})
}

func TestAuditGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database := &ledgerOfRefusals{fail: errBusy}
		audit := newAudit(database.append, slog.New(slog.DiscardHandler))
		stop := inBackground(t.Context(), audit.run)
		audit.add(escalation.Event{Key: "a"})
		synctest.Wait()
		began := time.Now()
		stop()
		require.LessOrEqual(t, time.Since(began), auditDrain+auditPause, "a database that stays away holds up no worker")

		database.away(fmt.Errorf("no such event: %w", store.ErrInvalid)) // a permanent error must not be retried
		audit.add(escalation.Event{Key: "b"})
		audit.add(escalation.Event{Key: "c"})
		stop = inBackground(t.Context(), audit.run)
		synctest.Wait()
		require.Empty(t, audit.queue)
		stop()
	})
}
