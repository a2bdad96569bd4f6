package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
)

// claimLinger is how long a claim outlasts its activity. The SDK reports the result in that time;
// a claim that is handed back after that is refused, and does no harm.
const claimLinger = 5 * time.Second

// claim names an attempt at an activity.
type claim struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	ActivityID string `json:"activity_id"`
	// Token is Temporal's for this attempt and no other.
	Token []byte `json:"token"`
}

// claims are the activities that run now, on whatever worker uses this state directory: a file each,
// which is locked by the worker's process. The kernel drops the locks of a process that dies,
// however it dies, so a worker that starts can tell which activities nobody works on any more, and
// does not have to leave that to a time-out.
type claims struct {
	dir    string
	logger *slog.Logger
}

// newClaims makes the directory of claims below the state directory.
func newClaims(stateDir string, logger *slog.Logger) (claims, error) {
	dir := filepath.Join(stateDir, "running")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return claims{}, fmt.Errorf("create the directory for what runs: %w", err)
	}
	return claims{dir: dir, logger: logger}, nil
}

// hold claims an attempt until the function that it returns is called. A claim that cannot be made,
// on a full disk for instance, is no reason not to run.
func (c claims) hold(info activity.Info) (release func()) {
	file, err := c.create(claim{
		WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID,
		ActivityID: info.ActivityID, Token: info.TaskToken,
	})
	if err != nil {
		c.logger.Warn("an activity cannot be claimed; should this worker die, it waits for its time-out",
			"activity", info.ActivityType.Name, "error", err)
		return func() {}
	}
	return func() {
		time.AfterFunc(claimLinger, func() { _ = errors.Join(os.Remove(file.Name()), file.Close()) })
	}
}

// create writes a claim and returns its file, locked.
func (c claims) create(attempt claim) (file *os.File, err error) {
	unlock, err := c.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if file, err = os.CreateTemp(c.dir, "claim-*"); err != nil {
		return nil, err
	}
	err = json.NewEncoder(file).Encode(attempt)
	if err = errors.Join(err, flock(file, syscall.LOCK_EX|syscall.LOCK_NB)); err != nil {
		return nil, errors.Join(err, os.Remove(file.Name()), file.Close())
	}
	return file, nil
}

// takeOrphaned removes the claims of processes that have ended, and returns them.
func (c claims) takeOrphaned() (orphaned []claim, err error) {
	unlock, err := c.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	names, err := filepath.Glob(filepath.Join(c.dir, "claim-*"))
	for _, name := range names {
		attempt, takeErr := takeOrphan(name)
		err = errors.Join(err, takeErr)
		if attempt != nil {
			orphaned = append(orphaned, *attempt)
		}
	}
	return orphaned, err
}

// takeOrphan removes a claim and returns it; nil if its process lives, or has not come to write it.
func takeOrphan(name string) (*claim, error) {
	file, err := os.Open(name) //nolint:gosec // of our own directory
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // its activity has ended just now
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if err := flock(file, syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil //nolint:nilnil // somebody works on it
	} else if err != nil {
		return nil, err
	}
	var attempt claim
	if json.NewDecoder(file).Decode(&attempt) != nil {
		return nil, os.Remove(name)
	}
	return &attempt, os.Remove(name)
}

// lock keeps others from making or taking claims, so that none is seen that is not locked yet.
func (c claims) lock() (unlock func(), err error) { return lockDir(c.dir) }

func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
