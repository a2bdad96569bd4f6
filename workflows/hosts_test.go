package workflows_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/claudeops/claudeops/activities"
)

// hosts plays the hosts of agents, one at a time. A host has the commits that were made there, and those that a checkpoint has brought.
type hosts struct {
	has map[string]bool
	// parent holds the commit on which each commit was made, and remote the commits that were pushed.
	parent map[string]string
	remote map[string]bool
	// lost counts the hosts that were lost.
	lost int
	// latest is the commit that was made last; empty if there is none.
	latest string
	// broken says what went wrong; empty if nothing has.
	broken string
}

func newHosts() *hosts {
	return &hosts{has: map[string]bool{}, parent: map[string]string{}, remote: map[string]bool{}}
}

// isLost replaces the host by another one, which has nothing of what was committed.
func (h *hosts) isLost() {
	h.lost++
	clear(h.has)
}

// mayBeLost loses one host in six, and reports whether it has.
func (h *hosts) mayBeLost(random *rand.Rand) bool {
	if random.IntN(6) > 0 {
		return false
	}
	h.isLost()
	return true
}

// bring has a host begin at a checkpoint.
func (h *hosts) bring(what string, at activities.Checkpoint) {
	if at.Commit == "" || at.Commit == "b0" || h.has[at.Commit] || h.broken != "" {
		return
	}
	if string(at.Pack) != at.Commit || at.Base != "b0" {
		h.broken = fmt.Sprintf("%s begins on a host without %s, and gets from %q: %q", what, at.Commit, at.Base, at.Pack)
	}
	h.has[at.Commit] = true
}

// commit makes a commit on another one.
func (h *hosts) commit(on string) string {
	h.latest = fmt.Sprint("c", len(h.parent)+1)
	h.parent[h.latest], h.has[h.latest] = on, true
	return h.latest
}

// push takes a commit of the host, or says why not.
func (h *hosts) push(request activities.PushRequest, problem string) activities.PushResult {
	h.bring("a push", activities.Checkpoint{Commit: request.Commit, Base: request.Base, Pack: request.Pack})
	if problem == "" {
		h.remote[request.Commit] = true
	}
	return activities.PushResult{Remote: "https://git.example.org/infra", Problem: problem}
}

// isPushed reports whether the remote has a commit, or one that was made on it.
func (h *hosts) isPushed(commit string) bool {
	for pushed := range h.remote {
		for at := pushed; at != ""; at = h.parent[at] {
			if at == commit {
				return true
			}
		}
	}
	return false
}

// left lists the commits that the remote does not have.
func (h *hosts) left() (left []string) {
	for commit := range h.parent {
		if !h.isPushed(commit) {
			left = append(left, commit)
		}
	}
	return left
}
