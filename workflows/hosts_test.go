package workflows_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/claudeops/claudeops/activities"
)

// hosts plays the hosts of agents, one at a time. A host has the commits that were made there, and those that a
// checkpoint has brought.
type hosts struct {
	has map[string]bool
	// parent holds the commit on which each commit was made, and remote the commits that were pushed.
	parent map[string]string
	remote map[string]bool
	// lost counts the hosts that were lost.
	lost int
	// head is the commit of the host's worktree; empty if the host has none. unseen holds the commits that no session
	// has reported, and whether a person was told that there may be such.
	head   string
	unseen map[string]bool
	// latest is the commit that was made last; empty if there is none.
	latest string
	// broken says what went wrong; empty if nothing has.
	broken string
}

func newHosts() *hosts {
	return &hosts{has: map[string]bool{}, parent: map[string]string{}, remote: map[string]bool{}, unseen: map[string]bool{}}
}

// isLost replaces the host by another one, which has nothing of what was committed.
func (h *hosts) isLost() {
	h.lost++
	h.head = ""
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
	h.latest = h.commitUnseen(on)
	h.see(h.latest)
	return h.latest
}

// commitUnseen makes a commit on another one, which nobody reports.
func (h *hosts) commitUnseen(on string) string {
	h.head = fmt.Sprint("c", len(h.parent)+1)
	h.parent[h.head], h.has[h.head], h.unseen[h.head] = on, true, false
	return h.head
}

// see has a commit reported, with all on which it was made.
func (h *hosts) see(commit string) {
	for at := commit; at != ""; at = h.parent[at] {
		if _, is := h.unseen[at]; is {
			delete(h.unseen, at)
			h.latest = commit
		}
	}
}

// begin returns the commit with which a worktree begins that must have the commit at: what it has instead stays if it
// was made on that one. It also reports whether the worktree is new.
func (h *hosts) begin(at string, exact bool) (head string, isNew bool) {
	isNew = h.head == ""
	if !isNew && !exact && h.madeOn(h.head, at) {
		return h.head, false
	}
	h.head = at
	return at, isNew
}

// madeOn reports whether a commit is another one, or was made on it.
func (h *hosts) madeOn(commit, on string) bool {
	for at := commit; at != ""; at = h.parent[at] {
		if at == on {
			return true
		}
	}
	return false
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
		if h.madeOn(pushed, commit) {
			return true
		}
	}
	return false
}

// left lists the commits that were reported and that the remote does not have.
func (h *hosts) left() (left []string) {
	for commit := range h.parent {
		if _, isUnseen := h.unseen[commit]; !isUnseen && !h.isPushed(commit) {
			left = append(left, commit)
		}
	}
	return left
}

// tell tells a person that there may be commits that no session has reported.
func (h *hosts) tell() {
	for commit := range h.unseen {
		h.unseen[commit] = true
	}
}

// untold lists the commits that no session has reported and of which nobody was told.
func (h *hosts) untold() (untold []string) {
	for commit, told := range h.unseen {
		if !told {
			untold = append(untold, commit)
		}
	}
	return untold
}
