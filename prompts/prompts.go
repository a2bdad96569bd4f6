package prompts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Launch is what the first prompt of a session is made from.
type Launch struct {
	// Tier is the tier that runs.
	Tier escalation.Tier
	// From is the tier whose conversation the session resumes; 0 is none or unknown.
	// Only Resumed uses it: an unknown conversation is told the rules again.
	From escalation.Tier
	// Policy is the chain's. The agent is told its DryRun, and the rules of Tier that narrow Brief.
	Policy escalation.Policy
	// Brief says in Markdown what the tier may do; in a dry run that is what Tier 1 may do. Empty leaves it out.
	Brief string
	// Services are the services to look at; none leaves the choice to the agent.
	Services []string
	// Request is what the person who started the chain asked for, in that person's words.
	Request string
	// Issue is the one problem that the session is to repair, in the words of the agent that found it.
	Issue string
	// Guidance is what a person added when the chain was escalated or continued.
	Guidance string
	// Recheck says that the session only looks again, after a wait, at Services.
	Recheck bool
	// CooldownFile is where the agent reads how far the cooldowns of Policy are used up; empty if
	// there is no such file.
	CooldownFile string
	// Handoff is the summary of the session before, as markdown. FromHandoff needs it,
	// and the others do not use it.
	Handoff string
	// CutOff is what is known of an earlier process of this very session that may not have been
	// told its work; nil if there was none.
	CutOff *Interruption
}

// Call is a tool call.
type Call struct {
	// Tool is the tool's name, such as "Bash".
	Tool string
	// Input is what the call was to do: a command line, or its input as JSON.
	Input string
}

// Interruption is what is known about a process that ended in the middle of its work.
type Interruption struct {
	// Calls are the tool calls that were in flight; none is known to have been if empty.
	Calls []Call
	// DryRun says that the chain is one.
	DryRun bool
}

// Fresh returns the complete prompt for a session that has no context.
func (s *Set) Fresh(launch Launch) (string, error) {
	launch.Handoff = ""
	return s.complete(launch)
}

// FromHandoff returns the complete prompt for a session that continues another by its
// summary. It fails without one.
func (s *Set) FromHandoff(launch Launch) (string, error) {
	if strings.TrimSpace(launch.Handoff) == "" {
		return "", errors.New("prompt from a handoff: the handoff is empty")
	}
	return s.complete(launch)
}

func (s *Set) complete(launch Launch) (string, error) {
	v, err := newView(launch)
	if err != nil {
		return "", err
	}
	return join(v, s.role(launch.Tier, false), s.sections(
		"cutoff.md", "request.md", "handoff.md", "permissions.md", "dryrun.md", "rules.md", "conclusion.md")...)
}

// Resumed returns the prompt for a session that goes on with a conversation: it states
// the new role and permissions and leaves the rest to the conversation.
func (s *Set) Resumed(launch Launch) (string, error) {
	launch.Handoff = ""
	v, err := newView(launch)
	if err != nil {
		return "", err
	}
	v.Resumed, v.Stranger = true, !launch.From.Valid()
	role := s.role(launch.Tier, true)
	if launch.Recheck {
		role = s.builtIn.Lookup("recheck.md")
	}
	sections := []*template.Template{role}
	sections = append(sections, s.sections("cutoff.md", "request.md", "permissions.md", "dryrun.md", "limits.md", "statuses.md")...)
	return join(v, s.builtIn.Lookup("resumed.md"), sections...)
}

// Continued returns the prompt that goes on with a session that was interrupted, because a person
// chose to: the rest is in its conversation. calls are those that it left without a result.
func (s *Set) Continued(launch Launch, calls []Call) (string, error) {
	return join(view{Guidance: strings.TrimSpace(launch.Guidance), CutOff: launch.CutOff, DryRun: launch.Policy.DryRun, Left: calls},
		s.builtIn.Lookup("continued.md"), s.sections("left.md", "cutoff.md", "request.md")...)
}

// Interrupted returns the prompt that goes on with a session whose process died under it.
func (s *Set) Interrupted(interruption Interruption) (string, error) {
	return join(interruption, s.builtIn.Lookup("interrupted.md"))
}

// Repair returns the prompt that asks, in the same conversation, for a verdict that is
// missing or invalid. reason says which of the two, and why.
func (s *Set) Repair(reason string) (string, error) {
	if strings.TrimSpace(reason) == "" {
		reason = "There was no verdict."
	}
	return join(struct{ Reason string }{reason}, s.builtIn.Lookup("repair.md"))
}

// HandoffRequest is what a tier is asked to write for the next one.
type HandoffRequest struct {
	// File is the path that the agent may write.
	File string
	// From is the tier that is asked, and Next the one that reads the handoff.
	From, Next escalation.Tier
	// Missing are the fields that the verdict lacks; none is known if empty.
	Missing []string
}

// HandoffRequest returns the prompt that asks a tier that has concluded for its handoff.
func (s *Set) HandoffRequest(request HandoffRequest) (string, error) {
	return join(struct {
		HandoffRequest
		Tier     int
		Repaired bool // the tier has made changes, and not only looked
		Longest  int
	}{
		request, int(request.Next), request.From >= escalation.TierSafeRepair, escalation.MaxHandoffChars,
	}, s.builtIn.Lookup("handoff-request.md"))
}

// view is what the templates of tiers see, those of operators among them.
type view struct {
	Tier    int  // 1, 2 or 3
	Resumed bool // the prompt goes on with a conversation
	// Stranger says that the conversation is not known to have been told any rules.
	Stranger bool
	DryRun   bool

	Services []string
	Issue    string
	Request  string
	Guidance string
	Handoff  string
	CutOff   *Interruption
	Left     []Call // what the session that is gone on with left without a result

	Brief    string   // what the tier may do, as Markdown; empty if nothing is said of that
	Allowed  []string // to what the tier's rules narrow it, a phrase each; empty if they do not
	Denied   []string // what the rules refuse, the same
	Commands bool     // the tier runs commands

	Restarts      string // how many restarts of a service are allowed; empty if nothing is limited
	Redeployments string // how many redeployments
	OwnLimits     bool   // some service has limits of its own
	CooldownFile  string // where what is left of them stands; empty if nowhere
}

func newView(launch Launch) (view, error) {
	if !launch.Tier.Valid() || len(launch.Policy.Tiers) < int(launch.Tier) {
		return view{}, fmt.Errorf("prompt for %s: the policy has no such tier", launch.Tier)
	}
	rules := launch.Policy.For(launch.Tier)
	v := view{
		Tier:     int(launch.Tier),
		DryRun:   launch.Policy.DryRun,
		Services: nonBlank(launch.Services),
		Issue:    strings.TrimSpace(launch.Issue),
		Request:  strings.TrimSpace(launch.Request),
		Guidance: strings.TrimSpace(launch.Guidance),
		Handoff:  strings.TrimSpace(launch.Handoff),
		CutOff:   launch.CutOff,
		Brief:    strings.TrimSpace(launch.Brief),
		Allowed:  phrases(rules.AllowedTools),
		Denied:   phrases(rules.DisallowedTools),
		Commands: slices.Contains(rules.Tools, "Bash"),
	}
	v.limit(launch)
	return v, nil
}

// limit fills in how often services may be repaired.
func (v *view) limit(launch Launch) {
	limits := launch.Policy.Cooldowns
	v.OwnLimits = len(limits.Services) > 0
	if !v.OwnLimits && !limits.Restarts.IsSet() && !limits.Redeployments.IsSet() {
		return
	}
	v.Restarts, v.Redeployments = howOften(limits.Restarts, "restart"), howOften(limits.Redeployments, "redeployment")
	v.CooldownFile = launch.CooldownFile
}
