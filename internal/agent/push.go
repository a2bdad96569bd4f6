package agent

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/change/checkout"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// pushLimit limits the time of one push.
const pushLimit = 2 * time.Minute

var _ activities.Pusher = (*Runner)(nil)

// commitPattern and branchPattern match what may be pushed: a commit by its hash, and a branch of a chain.
var (
	commitPattern = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
	branchPattern = regexp.MustCompile(`^claudeops/[A-Za-z0-9_-]+$`)
)

// Push implements activities.Pusher. Git runs with the user, the home and the environment of agents, so it has their
// credentials for the remote and no others. It runs no hook, and pushes neither tags nor submodules.
func (r *Runner) Push(ctx context.Context, request activities.PushRequest) (activities.PushResult, error) {
	if !commitPattern.MatchString(request.Commit) || !branchPattern.MatchString(request.Branch) {
		return activities.PushResult{Final: true, Problem: "only a commit on the branch of a chain is pushed"}, nil
	}
	ctx, stop := r.untilDrained(ctx)
	defer stop()
	run, err := r.inDirectory(activities.AgentRun{Directory: request.Directory})
	if err != nil {
		return activities.PushResult{}, err
	}
	origin, err := r.workplaces.keeper.Origin(ctx, run.Directory, checkout.Checkpoint{
		Commit: request.Commit, Base: request.Base, Pack: request.Pack,
	})
	if err != nil {
		return activities.PushResult{}, err
	}
	if origin.Remote == "" {
		return activities.PushResult{NoRemote: true}, nil
	}
	scratch, err := r.host.Scratch(ctx, "push-"+rand.Text())
	if err != nil {
		return activities.PushResult{}, err
	}
	defer scratch.Close(ctx)
	limited, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	writable := make([]string, 0, 4)
	for _, dir := range []string{"refs", "logs", "reftable"} {
		writable = append(writable, filepath.Join(origin.Common, dir))
	}
	if filepath.IsAbs(origin.Remote) { // a directory
		writable = append(writable, origin.Remote)
	}
	var said tail
	code, err := scratch.Run(limited, cell.Program{
		Path: r.lookPath("git"), Dir: origin.Top,
		Passed:   []string{"git", "gh", "glab"}, // git's helper for credentials can be one of them
		Readable: []string{run.Directory, origin.Top, origin.Common}, Writable: writable,
		Args: []string{
			"-c", "safe.directory=" + origin.Top, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c",
			"gc.auto=0", "push", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no",
			"--porcelain", "origin", request.Commit + ":refs/heads/" + request.Branch,
		},
		Stdout: &said, Stderr: &said,
	})
	result := activities.PushResult{Remote: withoutCredentials(origin.Remote)}
	switch {
	case ctx.Err() != nil: // it was stopped with the worker, and says nothing about the remote
		return activities.PushResult{}, context.Cause(ctx)
	case err != nil:
		return activities.PushResult{}, err
	case code != 0 || limited.Err() != nil:
		result.Problem = fmt.Sprintf("git push: exit code %d: %s", code,
			r.mask.Text(plaintext.Cut(plaintext.Compact(said.text()), 500)))
	}
	return result, nil
}

// withoutCredentials returns the address of a remote without a user and a password.
func withoutCredentials(remote string) string {
	if parsed, err := url.Parse(remote); err == nil && parsed.Host != "" {
		parsed.User = nil
		return parsed.String()
	}
	return strings.TrimSpace(remote)
}
