package supervisor_test

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

// point is a place in the life of a chain's activities at which a fault is injected: before or after the
// nth activity of a type. After means that its work is done and Temporal has not been told.
type point struct {
	activity string
	after    bool
	nth      int
}

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

// faultAt injects a fault into a worker at a point: from then on, strike is called there, and its error is
// what the activity returns.
type faultAt struct {
	interceptor.InterceptorBase
	point  point
	strike func() error

	mu   sync.Mutex
	seen map[string]int // activity id -> which of its type it is
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

// strikesAt reports whether an activity is the one of the point. A repeated attempt is the same activity.
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

// pointVariable is the point at which a worker role dies, once: a file of that path is there until then.
const (
	pointVariable = "FAULTS_POINT"
	onceVariable  = "FAULTS_ONCE"
)

// dieOnce kills this process, unless another one has died for it before.
func dieOnce() error {
	if removed := os.Remove(os.Getenv(onceVariable)) == nil; !removed {
		return nil
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// leaving refuses to begin a point's activity on this host, and makes the file when it was asked to. Another
// host gets it with the next attempt.
func leaving(p point, file string) *faultAt {
	return newFaultAt(p, func() error {
		refused := temporal.NewApplicationErrorWithOptions("this host is about to be lost", "HostLost",
			temporal.ApplicationErrorOptions{NextRetryDelay: 200 * time.Millisecond})
		return errors.Join(os.WriteFile(file, nil, 0o600), refused)
	})
}

// TestFaultWorkerKilledAt kills the worker of a chain at each point at which something is done and not yet
// known to Temporal, or known and not yet done. The next worker goes on, and nothing is done twice.
func TestFaultWorkerKilledAt(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, p := range map[string]point{
		"before_the_policy":            {"LoadPolicy", false, 1},
		"with_a_record_nobody_knows":   {"OpenSession", true, 2},
		"after_the_record":             {"RunTier", false, 2}, // and before the process
		"between_heartbeat_and_answer": {"RunTier", true, 2},
		"with_an_end_nobody_knows":     {"CloseSession", true, 1}, // that of Tier 2: Tier 1's is recorded with the record of Tier 2
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
