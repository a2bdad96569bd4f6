package prompts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Launch is the input for the first prompt of a session.
type Launch struct {
	// Tier is the tier that runs.
	Tier escalation.Tier
	// From is the tier whose conversation the session resumes; 0 if the session resumes no conversation, or the tier of
	// the conversation is unknown. Only Resumed uses From. If From is 0, Resumed repeats the most important rules.
	From escalation.Tier
	// Policy is the chain's policy. The prompt states the cooldowns, whether this is a dry run, and those permission
	// rules of the tier that restrict Brief further.
	Policy escalation.Policy
	// Brief describes in Markdown the permissions of the tier; in a dry run, the permissions of Tier 1. If Brief is
	// empty, the prompt does not describe permissions.
	Brief string
	// Services lists the services to check. If Services is empty, the agent chooses which services it checks.
	Services []string
	// Catalog holds the services that the operator has described; nil if there are none.
	Catalog *escalation.Catalog
	// Affected lists those services of the chain that are known to be affected. The prompt describes these services
	// before all others.
	Affected []string
	// Instructions holds what the operator has written about the services.
	Instructions []Instruction
	// Request is the request of the person who started the chain, word for word.
	Request string
	// Issue describes the one problem that the session must repair. The agent that found the problem wrote the text.
	Issue string
	// Alert describes the alerts that started the chain, in the words of monitoring systems.
	Alert string
	// Guidance is the text that an operator added when escalating or continuing the chain.
	Guidance string
	// Gate says in a sentence how the gate before the session was closed; empty if there was none.
	Gate string
	// Recheck means that the session only checks Services once more after a wait.
	Recheck bool
	// CooldownFile is the path of the file with the state of the cooldowns; empty if the agent has no such file.
	CooldownFile string
	// Handoff is the summary of the previous session, as Markdown. FromHandoff requires Handoff. The other methods
	// ignore it.
	Handoff string
	// CutOff describes an earlier process of the same session that may have ended before it received its task; nil if
	// there was no such process.
	CutOff *Interruption
	// Incidents holds open incidents for Tier 1, and only the chain's incidents for higher tiers.
	Incidents []escalation.Incident
	// Leave holds the incidents that other chains take care of.
	Leave []escalation.ChainIncident
	// Repairs lists earlier repairs of the services.
	Repairs []escalation.PastRepair
	// Correction lists what the session must correct in an earlier change; nil for its usual work.
	Correction *Correction
	// Memories is the section about memories of the services, as package memory has written it; empty if there are
	// none.
	Memories string
}

// Instruction is the operator's text about a service.
type Instruction struct {
	Service string // empty for a remark of the supervisor
	Kind    string // what the text is, in words; empty for a remark
	Text    string // Markdown
}

// Call is a tool call.
type Call struct {
	// Tool is the tool's name, such as "Bash".
	Tool string
	// Input is the input of the call: a command line, or JSON.
	Input string
}

// Interruption describes a process that ended in the middle of its work.
type Interruption struct {
	// Calls lists the tool calls that had no result; empty if none are known.
	Calls []Call
	// DryRun reports whether the chain is a dry run.
	DryRun bool
}

// Fresh returns the complete prompt for a session that has no context.
func (s *Set) Fresh(launch Launch) (string, error) {
	launch.Handoff = ""
	return s.complete(launch)
}

// FromHandoff returns the complete prompt for a session that starts from the handoff of another session. It fails if
// the handoff is blank.
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
		"cutoff.md", "request.md", "correction.md", "incidents.md", "known.md", "instructions.md", "memories.md",
		"handoff.md",
		"permissions.md", "dryrun.md", "rules.md", "conclusion.md")...)
}

// Resumed returns the prompt for a session that resumes the conversation of another session. The prompt states the new
// role and permissions, and describes the affected services. The conversation contains the rest.
func (s *Set) Resumed(launch Launch) (string, error) {
	launch.Handoff = ""
	v, err := newView(launch)
	if err != nil {
		return "", err
	}
	v.Resumed, v.Stranger = true, !launch.From.Valid()
	if !v.Stranger {
		v.know(launch.Catalog.Around(launch.Affected))
	}
	role := s.role(launch.Tier, true)
	if launch.Recheck {
		role = s.builtIn.Lookup("recheck.md")
	}
	sections := []*template.Template{role}
	sections = append(sections, s.sections(
		"cutoff.md", "request.md", "correction.md", "incidents.md", "known.md", "instructions.md", "memories.md",
		"permissions.md", "dryrun.md",
		"limits.md", "statuses.md")...)
	return join(v, s.builtIn.Lookup("resumed.md"), sections...)
}

// Continued returns the prompt for an interrupted session that an operator has chosen to continue. The prompt lists the
// tool calls of the session that have no result (calls). The conversation of the session contains the rest.
func (s *Set) Continued(launch Launch, calls []Call) (string, error) {
	v := view{
		Guidance: strings.TrimSpace(launch.Guidance), CutOff: launch.CutOff, DryRun: launch.Policy.DryRun, Left: calls,
		Correction: launch.Correction, Gate: launch.Gate,
	}
	return join(v, s.builtIn.Lookup("continued.md"), s.sections("left.md", "cutoff.md", "correction.md",
		"request.md")...)
}

// Interrupted returns the prompt that continues a session after its process has died.
func (s *Set) Interrupted(interruption Interruption) (string, error) {
	return join(interruption, s.builtIn.Lookup("interrupted.md"))
}

// Worktree returns the section for a session that works in a git worktree. Append this section to the prompt of the
// session.
func (s *Set) Worktree(worktree escalation.Worktree) (string, error) {
	return join(worktree, s.builtIn.Lookup("worktree.md"))
}

// Repair returns the prompt that asks for the verdict again in the same conversation. The prompt contains the reason
// why the verdict is invalid. If reason is blank, the prompt says that there was no verdict.
func (s *Set) Repair(reason string) (string, error) {
	if strings.TrimSpace(reason) == "" {
		reason = "There was no verdict."
	}
	return join(struct{ Reason string }{reason}, s.builtIn.Lookup("repair.md"))
}

// Shorter returns the prompt that asks for a shorter answer, after one that was longer than the model may write.
func (s *Set) Shorter() (string, error) {
	return join(struct{}{}, s.builtIn.Lookup("shorter.md"))
}

// HandoffRequest is the input for the prompt that asks a tier for the handoff to the next tier.
type HandoffRequest struct {
	// File is the path of the file that the agent must write.
	File string
	// From is the tier that writes the handoff. Next is the tier that reads it.
	From, Next escalation.Tier
	// Missing lists the fields of the handoff that the verdict does not fill; empty if none are known.
	Missing []string
}

// HandoffRequest returns the prompt that asks a tier for its handoff. The tier has already given its verdict.
func (s *Set) HandoffRequest(request HandoffRequest) (string, error) {
	return join(struct {
		HandoffRequest
		Tier     int
		Repaired bool // the tier may have made changes
		Longest  int
	}{
		request, int(request.Next), request.From >= escalation.TierSafeRepair, escalation.MaxHandoffChars,
	}, s.builtIn.Lookup("handoff-request.md"))
}

// view holds the values for the templates of the complete, resumed and continued forms, and for operators' overrides.
type view struct {
	Tier    int  // 1, 2 or 3
	Resumed bool // the prompt resumes a conversation
	// Stranger means that the resumed conversation possibly lacks the supervisor's rules.
	Stranger bool
	DryRun   bool

	Services []string
	Known    []string // describes services of the catalog, one line each
	Unlisted int      // the number of services of the catalog that Known leaves out
	// Instructions holds the operator's texts about the services.
	Instructions []Instruction
	Issue        string
	Alert        string
	Request      string
	Guidance     string
	Gate         string
	Handoff      string
	CutOff       *Interruption
	// Incidents, Leave and Repairs hold one line of Markdown for each entry.
	Incidents, Leave, Repairs []string
	// Memories is a whole section.
	Memories string
	// Correction lists what the session must correct; nil for its usual work.
	Correction *Correction
	Left       []Call // tool calls of the continued session that have no result

	Brief    string // the permissions of the tier, as Markdown; empty if the prompt omits them
	Commands bool   // the tier can run commands

	Restarts      string // the limit on restarts of a service, in words; empty if no cooldown is set at all
	Redeployments string // the limit on redeployments of a service, in words; empty if no cooldown is set at all
	OwnLimits     bool   // some services have limits that differ from the general limits
	CooldownFile  string // path of the file with the use of the limits; empty if there is none
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
		Alert:    strings.TrimSpace(launch.Alert),
		Request:  strings.TrimSpace(launch.Request),
		Guidance: strings.TrimSpace(launch.Guidance),
		Gate:     launch.Gate,
		Handoff:  strings.TrimSpace(launch.Handoff),
		CutOff:   launch.CutOff,

		Correction: launch.Correction,

		Instructions: launch.Instructions,

		Incidents: describeIncidents(launch.Incidents, launch.Tier),
		Leave:     describeLeft(launch.Leave),
		Repairs:   describeRepairs(launch.Repairs),
		Memories:  strings.TrimSpace(launch.Memories),

		Brief:    strings.TrimSpace(launch.Brief),
		Commands: slices.Contains(rules.Tools, "Bash"),
	}
	v.limit(launch)
	v.know(launch.Catalog.ByRelevance(launch.Affected))
	return v, nil
}

// limit fills in the fields about the limits on repairs. If the policy has no cooldowns, these fields stay empty.
func (v *view) limit(launch Launch) {
	limits := launch.Policy.Cooldowns
	v.OwnLimits = len(limits.Services) > 0
	if !v.OwnLimits && !limits.Restarts.IsSet() && !limits.Redeployments.IsSet() {
		return
	}
	v.Restarts, v.Redeployments = howOften(limits.Restarts, "restart"), howOften(limits.Redeployments, "redeployment")
	v.CooldownFile = launch.CooldownFile
}
