package escalation

import (
	"fmt"
	"strings"
)

// Worktree describes the git worktree in which a session worked. The worktree replaces the chain's directory.
type Worktree struct {
	// Path is the worktree's directory, on the session's host.
	Path string `json:"path"`
	// Branch is the branch that was made for the chain.
	Branch string `json:"branch"`
	// Origin is the directory from which the worktree was made. The session's changes are not in Origin.
	Origin string `json:"origin"`
	// New reports whether the worktree was made for this session. If not, it contains the work of earlier sessions of
	// the chain.
	New bool `json:"new,omitempty"`
	// Again reports that an earlier attempt at the session has worked in the worktree.
	Again bool `json:"again,omitempty"`
	// Aside is the name under which the commits of the worktree were put aside, because the session begins with others;
	// empty if there were none.
	Aside string `json:"aside,omitempty"`
	// EarlierHosts lists other hosts on which earlier attempts at the session have worked, if nobody knows what was
	// committed there.
	EarlierHosts []string `json:"earlier_hosts,omitempty"`
	// Kept reports whether the worktree still existed after the session. A worktree without changes and commits is
	// removed.
	Kept bool `json:"kept,omitempty"`
	// Commits counts the commits in the worktree that Origin does not have.
	Commits int `json:"commits,omitempty"`
	// Changed reports whether the worktree has uncommitted changes.
	Changed bool `json:"changed,omitempty"`
	// Problem says why Commits and Changed are unknown; empty if both are known.
	Problem string `json:"problem,omitempty"`
	// Missing says why the session had no worktree, although it needs one to commit; empty if it had one. Then only
	// Origin is set, too.
	Missing string `json:"missing,omitempty"`
}

// GoesOn reports whether the session went on with what earlier sessions have left in the worktree.
func (w *Worktree) GoesOn() bool { return w != nil && w.Path != "" && !w.New && w.Aside == "" }

// WorkedBefore returns EarlierHosts; nil for a session without a worktree.
func (w *Worktree) WorkedBefore() []string {
	if w == nil {
		return nil
	}
	return w.EarlierHosts
}

// MayHoldCommits reports whether the worktree may have commits after the session.
func (w *Worktree) MayHoldCommits() bool { return w != nil && (w.Commits > 0 || w.Problem != "") }

// Describe says in a sentence where a session has left its work. If host is empty, the sentence names no host. If the
// session has left nothing, Describe returns "".
func (w *Worktree) Describe(host string) string {
	switch {
	case w != nil && w.Missing != "":
		return fmt.Sprintf("the session had no worktree of %s and could not commit: %s", w.Origin, w.Missing)
	case w == nil || !w.Kept:
		return ""
	}
	var holds []string
	switch {
	case w.Commits == 1:
		holds = append(holds, "1 commit on the branch "+w.Branch)
	case w.Commits > 1:
		holds = append(holds, fmt.Sprintf("%d commits on the branch %s", w.Commits, w.Branch))
	}
	if w.Changed {
		holds = append(holds, "changes that are not committed")
	}
	if w.Problem != "" {
		holds = append(holds, "work that could not be looked at ("+w.Problem+")")
	}
	where := w.Path
	if host != "" {
		where += " on " + host
	}
	return fmt.Sprintf("the worktree %s is kept, with %s; nothing of it is in %s until a person merges it",
		where, strings.Join(holds, " and "), w.Origin)
}
