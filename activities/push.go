package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// Pusher pushes commits as the agents' user.
type Pusher interface {
	// Push pushes one commit to a branch of the remote origin, and nothing else. If that is refused, the result has a
	// problem. An error means that this host cannot tell, for example because it does not have the commit.
	Push(ctx context.Context, request PushRequest) (PushResult, error)
}

// PushRequest names an approved commit.
type PushRequest struct {
	// Directory is the chain's directory in the repository; empty for the default one.
	Directory string `json:"directory,omitempty"`
	Branch    string `json:"branch"`
	Commit    string `json:"commit"`
	// Base and Pack let a host have the commit that did not make it, as in Checkpoint; empty if nothing was carried
	// along.
	Base string `json:"base,omitempty"`
	Pack []byte `json:"pack,omitempty"`
}

// PushResult says where a commit was pushed.
type PushResult struct {
	// Remote is the address of the remote, without credentials.
	Remote string `json:"remote,omitempty"`
	// NoRemote reports that the repository has no remote origin: the commit stays on its branch, and no attempt can
	// push it.
	NoRemote bool `json:"no_remote,omitempty"`
	// Problem says why the commit was not pushed; empty if it was. Final reports that another attempt would end in the
	// same way.
	Problem string `json:"problem,omitempty"`
	Final   bool   `json:"final,omitempty"`
}

// beatInterval is the time between two heartbeats of an activity that runs programs and no agent.
const beatInterval = 3 * time.Second

// beat sends heartbeats until the caller calls the returned function.
func beat(ctx context.Context) (done func()) {
	ctx, stop := context.WithCancel(ctx)
	beats := time.NewTicker(beatInterval)
	go func() {
		defer beats.Stop()
		for {
			select {
			case <-beats.C:
				activity.RecordHeartbeat(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}

// PushChange pushes an approved commit. Another attempt, on another host, may have the commit.
func (t *Tiers) PushChange(ctx context.Context, request PushRequest) (PushResult, error) {
	done := beat(ctx)
	defer done()
	result, err := t.Pusher.Push(ctx, request)
	if err != nil {
		return PushResult{}, temporal.NewApplicationError(err.Error(), ErrorTypeAgent)
	}
	return result, nil
}
