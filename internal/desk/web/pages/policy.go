package pages

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// policyPage is the data of the page about the policy.
type policyPage struct {
	Explanation operations.Explanation
	Tier        escalation.Tier
	Tiers       []escalation.Tier
	// Tool and Call are the call that is tried; Call is empty if none is.
	Tool, Call string
	// Decision is what the guard decides on the call; nil if none is tried.
	Decision *operations.Decision
	// Problem says why the call could not be tried; empty if it could.
	Problem string
}

// showPolicy shows what a tier may do. If the URL holds a call, the page says what the guard decides on it; nothing is
// run.
func (p *Pages) showPolicy(w http.ResponseWriter, r *http.Request) error {
	form := r.URL.Query()
	tier, _ := strconv.Atoi(form.Get("tier"))
	page := policyPage{
		Tier: escalation.Tier(tier), Tiers: escalation.Tiers(),
		Tool: strings.TrimSpace(form.Get("tool")), Call: strings.TrimSpace(form.Get("call")),
	}
	if !page.Tier.Valid() {
		page.Tier = escalation.TierObserve
	}
	var err error
	if page.Explanation, err = p.policy.Explain(page.Tier); err != nil {
		return err
	}
	v := view{template: "policy", title: "Policy", section: "/policy"}
	if page.Call != "" {
		decision, err := p.policy.Try(page.call(), "")
		switch {
		case err == nil:
			page.Decision = &decision
		case operations.KindOf(err) == operations.KindInvalid:
			page.Problem, v.status = err.Error(), http.StatusUnprocessableEntity
		default:
			return err
		}
	}
	v.data = page
	return p.show(w, r, v)
}

// call returns the call in the form in which the guard gets it.
func (c policyPage) call() operations.Call {
	call := operations.Call{Tier: c.Tier, Tool: c.Tool}
	if c.Tool == "" || c.Tool == "Bash" {
		call.Command = c.Call
	} else {
		call.Input = json.RawMessage(c.Call)
	}
	return call
}

// grantedProgram is a program with its permitted uses. Each use has several lines.
type grantedProgram struct {
	Name string
	Uses [][]string
}

// programsOf groups what a tier may run by program.
func programsOf(e operations.Explanation) []grantedProgram {
	var programs []grantedProgram
	for _, grant := range e.Merged() {
		name := strings.ReplaceAll(grant.Program, "|", ", ")
		if last := len(programs) - 1; last < 0 || programs[last].Name != name {
			programs = append(programs, grantedProgram{Name: name})
		}
		last := &programs[len(programs)-1]
		last.Uses = append(last.Uses, grant.Lines())
	}
	return programs
}
