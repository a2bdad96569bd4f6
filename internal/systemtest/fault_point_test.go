package systemtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
)

// point is a place in a chain at which a fault is injected: before or after the nth activity of a type. After means
// that the activity's work is done, but Temporal has not received the result.
type point struct {
	activity string
	after    bool
	nth      int
}

// before returns the point before the nth activity of a type.
func before(name string, nth int) point { return point{activity: name, nth: nth} }

// after returns the point after the nth activity of a type.
func after(name string, nth int) point { return point{activity: name, after: true, nth: nth} }

func (p point) String() string {
	return fmt.Sprintf("%s:%t:%d", p.activity, p.after, p.nth)
}

func parsePoint(text string) (point, error) {
	fields := strings.Split(text, ":")
	if len(fields) != 3 {
		return point{}, fmt.Errorf("%q is not a point", text)
	}
	after, afterErr := strconv.ParseBool(fields[1])
	nth, nthErr := strconv.Atoi(fields[2])
	return point{fields[0], after, nth}, errors.Join(afterErr, nthErr)
}

// faultAt is an interceptor that injects a fault into a worker. At the point it calls strike. If strike returns an
// error, the activity returns that error.
type faultAt struct {
	interceptor.InterceptorBase
	point  point
	strike func() error

	mu   sync.Mutex
	seen map[string]int // activity ID -> position among the activities of the type
}

func newFaultAt(p point, strike func() error) *faultAt {
	return &faultAt{point: p, strike: strike, seen: map[string]int{}}
}

// InterceptActivity implements interceptor.Interceptor.
func (f *faultAt) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &faultyActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, f}
}

type faultyActivity struct {
	interceptor.ActivityInboundInterceptorBase
	fault *faultAt
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *faultyActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	strikes := a.fault.strikesAt(activity.GetInfo(ctx))
	if strikes && !a.fault.point.after {
		if err := a.fault.strike(); err != nil {
			return nil, err
		}
	}
	result, err := a.Next.ExecuteActivity(ctx, in)
	if strikes && a.fault.point.after {
		if err := a.fault.strike(); err != nil {
			return nil, err
		}
	}
	return result, err
}

// strikesAt reports whether the fault point names this activity: its type, and its position among the activities of
// the type. Retries of an activity do not advance the position.
func (f *faultAt) strikesAt(info activity.Info) bool {
	if info.ActivityType.Name != f.point.activity {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.seen[info.ActivityID]; !known {
		f.seen[info.ActivityID] = len(f.seen) + 1
	}
	return f.seen[info.ActivityID] == f.point.nth
}

// These variables make a worker role kill itself once. pointVariable is the fault point. onceVariable is the path of
// a file that exists until then.
const (
	pointVariable = "FAULTS_POINT"
	onceVariable  = "FAULTS_ONCE"
)

// dieOnce kills this process if it can remove the file named by onceVariable. If the file is missing, an earlier
// process has died, and dieOnce does nothing.
func dieOnce() error {
	if removed := os.Remove(os.Getenv(onceVariable)) == nil; !removed {
		return nil
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// leaving returns a fault for a host that is about to be lost. The host refuses to begin the activity at p, and
// creates file. Another host runs the activity with a later attempt.
func leaving(p point, file string) *faultAt {
	return newFaultAt(p, func() error {
		refused := temporal.NewApplicationErrorWithOptions("this host is about to be lost", "HostLost",
			temporal.ApplicationErrorOptions{NextRetryDelay: 200 * time.Millisecond})
		return errors.Join(os.WriteFile(file, nil, 0o600), refused)
	})
}

// TestFaultWorkerKilledAt kills the worker of a chain at several points. At some of them work is done that Temporal
// does not know of yet. At the others Temporal expects work that has not begun yet. The next worker must continue, and
// do nothing twice.
func TestFaultWorkerKilledAt(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, p := range map[string]point{
		"before_the_policy":            before("LoadPolicy", 1),
		"with_a_record_nobody_knows":   after("OpenSession", 2),
		"after_the_record":             before("RunTier", 2), // before the process starts
		"between_heartbeat_and_answer": after("RunTier", 2),
		"with_an_end_nobody_knows":     after("CloseSession", 1), // Tier 2's end; OpenSession of Tier 2 has recorded Tier 1's
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			once := filepath.Join(t.TempDir(), "once")
			require.NoError(t, os.WriteFile(once, nil, 0o600))
			f := newFaultSite(t, c, 1, "CLAUDEOPS_TASK_QUEUE="+name, "TEMPORAL_ADDRESS="+address)
			f.environ = append(f.environ, pointVariable+"="+p.String(), onceVariable+"="+once)
			end := f.begin(t, "killed-"+name)
			first := startRole(t, "worker", nil, f.environ...)
			require.Error(t, first.Wait(), "it kills itself")
			require.NoFileExists(t, once)
			startRole(t, "worker", nil, f.environ...)
			chain := end()
			t.Logf("faults: worker killed %s (%s): attempts of the tiers %d and %d", name, p, chain.Sessions[0].Attempts, chain.Sessions[1].Attempts)
		})
	}
}
