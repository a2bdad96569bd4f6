package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/claudeops/claudeops/internal/filelock"
)

// leaseLinger is the time for which a lease remains after its activity. During this time the SDK reports the result to
// Temporal. After the report, Temporal refuses to fail the activity.
const leaseLinger = 5 * time.Second

// leasePattern is the pattern of lease files' names, for filepath.Glob and os.CreateTemp.
const leasePattern = "lease-*"

// Leases manages lease files. Each activity of one namespace has a lease file while it runs on a worker with this state
// directory. The worker's process holds a lock on the file. When a process dies, for whatever reason, the kernel
// releases the locks of that process. So a starting worker can find the activities of dead processes, and need not wait
// for their timeout.
type Leases struct {
	dir    string
	logger *slog.Logger
}

// lease identifies one attempt at an activity.
type lease struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	ActivityID string `json:"activity_id"`
	// Token is Temporal's task token, which is valid only for this attempt.
	Token []byte `json:"token"`
}

// OpenLeases creates the directory for leases in the state directory. Each namespace has its own directory. Only a
// worker of the same namespace can fail an activity, so workers of other namespaces must not take the lease of that
// activity.
func OpenLeases(stateDir, namespaceID string, logger *slog.Logger) (*Leases, error) {
	if !filepath.IsLocal(namespaceID) {
		return nil, fmt.Errorf("create the directory for leases: the namespace's id %q is no file name", namespaceID)
	}
	dir := filepath.Join(stateDir, "running", namespaceID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory for leases: %w", err)
	}
	return &Leases{dir: dir, logger: logger}, nil
}

// hold creates a lease for an attempt, and returns a function that ends the lease. If hold cannot write the lease, for
// example because the disk is full, the activity runs without a lease.
func (l *Leases) hold(info activity.Info) (release func()) {
	held, err := l.create(lease{
		WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID,
		ActivityID: info.ActivityID, Token: info.TaskToken,
	})
	if err != nil {
		l.logger.Warn("an activity runs without a lease; should this worker die, the activity waits for its time-out",
			"activity", info.ActivityType.Name, "error", err)
		return func() {}
	}
	return func() {
		time.AfterFunc(leaseLinger, func() { _ = held.end() })
	}
}

// heldLease is a lease of this process.
type heldLease struct {
	file string
	lock *filelock.Lock
}

// end removes the lease file and releases its lock.
func (h heldLease) end() error { return errors.Join(os.Remove(h.file), h.lock.Close()) }

// create writes a lease and locks it.
func (l *Leases) create(attempt lease) (held heldLease, err error) {
	unlock, err := l.lock()
	if err != nil {
		return heldLease{}, err
	}
	defer unlock()
	file, err := os.CreateTemp(l.dir, leasePattern)
	if err != nil {
		return heldLease{}, err
	}
	held.file = file.Name()
	err = errors.Join(json.NewEncoder(file).Encode(attempt), file.Close())
	if err == nil {
		held.lock, err = filelock.Try(held.file)
	}
	if err != nil {
		return heldLease{}, errors.Join(err, os.Remove(held.file))
	}
	return held, nil
}

// takeOrphaned removes and returns the leases whose processes have ended.
func (l *Leases) takeOrphaned() (orphaned []lease, err error) {
	unlock, err := l.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	names, err := filepath.Glob(filepath.Join(l.dir, leasePattern))
	for _, name := range names {
		attempt, found, takeErr := takeOrphan(name)
		err = errors.Join(err, takeErr)
		if found {
			orphaned = append(orphaned, attempt)
		}
	}
	return orphaned, err
}

// takeOrphan removes a lease whose process has ended. It returns false if another process holds the lease, or if its
// process died before it had written the lease.
func takeOrphan(name string) (attempt lease, found bool, err error) {
	lock, err := filelock.Try(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, filelock.ErrHeld) {
		return lease{}, false, nil // its activity has just ended, or still runs
	}
	if err != nil {
		return lease{}, false, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	content, err := os.ReadFile(name) //nolint:gosec // of our own directory
	if errors.Is(err, fs.ErrNotExist) {
		return lease{}, false, nil
	}
	if err != nil {
		return lease{}, false, err
	}
	found = json.Unmarshal(content, &attempt) == nil
	return attempt, found, os.Remove(name)
}

// lock prevents other processes from creating and taking leases. Hold it to create a lease. Otherwise another process
// could find the lease before its file is locked.
func (l *Leases) lock() (unlock func(), err error) {
	held, err := filelock.Wait(context.Background(), l.dir)
	if err != nil {
		return nil, err
	}
	return func() { _ = held.Close() }, nil
}

// Interceptor returns an interceptor that makes a worker hold a lease for each activity that it runs.
func (l *Leases) Interceptor() interceptor.WorkerInterceptor { return &leasing{leases: l} }

type leasing struct {
	interceptor.WorkerInterceptorBase
	leases *Leases
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (l *leasing) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &leasedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, l.leases}
}

type leasedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	leases *Leases
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *leasedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	if info.IsLocalActivity { // Temporal repeats the whole workflow task if the worker dies
		return a.Next.ExecuteActivity(ctx, in)
	}
	release := a.leases.hold(info)
	defer release()
	return a.Next.ExecuteActivity(ctx, in)
}
