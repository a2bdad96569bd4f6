package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// nowPage is the data of the first page.
type nowPage struct {
	operations.Now

	// Forms are the open gates with their forms.
	Forms []gateForm
	// Unanswered are the chains that wait at a gate and did not say at which.
	Unanswered []operations.GateRow
}

// showNow shows what happens now.
func (p *Pages) showNow(w http.ResponseWriter, r *http.Request) error {
	page := nowPage{Now: p.overview.Now(r.Context())}
	for _, row := range page.Gates.Gates {
		if row.Gate == nil {
			page.Unanswered = append(page.Unanswered, row)
			continue
		}
		page.Forms = append(page.Forms, gateForm{
			ChainID: row.ChainID, Gate: *row.Gate, Services: row.Services, Back: "/",
		})
	}
	return p.show(w, r, view{
		template: "now", title: "Now", section: "/", parts: []string{"attention", "work", "money"}, data: page,
	})
}

// HasPlan reports whether one of the open gates is that of a plan.
func (n nowPage) HasPlan() bool {
	return slices.ContainsFunc(n.Forms, func(form gateForm) bool { return form.Gate.Phase != "" })
}

// Unasked counts the chains at work that were not asked what they do, because there are too many.
func (n nowPage) Unasked() int { return max(n.Work.Running-n.Gates.Waiting-n.Work.Asked, 0) }

// maxNextLooks limits the schedules whose next look is shown.
const maxNextLooks = 5

// NextLooks returns the next cycle of each schedule, soonest first.
func (n nowPage) NextLooks() []operations.NextCycle {
	var looks []operations.NextCycle
	for _, next := range n.Cycles.Next {
		listed := slices.ContainsFunc(looks,
			func(look operations.NextCycle) bool { return look.ScheduleID == next.ScheduleID })
		if !listed && len(looks) < maxNextLooks {
			looks = append(looks, next)
		}
	}
	return looks
}

// Waiting returns the chains that wait for something else than a person's answer.
func (n nowPage) Waiting() []operations.WaitingChain {
	return slices.DeleteFunc(slices.Clone(n.Waits.Chains), func(chain operations.WaitingChain) bool {
		return chain.Kind == operations.WaitGate
	})
}

// Lead says in one sentence whether a person has to do something.
func (n nowPage) Lead() string {
	var parts []string
	if waiting := n.Gates.Waiting; waiting > 0 {
		verb := "waits"
		if waiting > 1 {
			verb = "wait"
		}
		parts = append(parts, fmt.Sprintf("%s %s for your answer", plaintext.Count(waiting, "chain"), verb))
	}
	if open := n.Incidents.Open; open > 0 {
		verb := "is"
		if open > 1 {
			verb = "are"
		}
		parts = append(parts, fmt.Sprintf("%s %s open", plaintext.Count(open, "incident"), verb))
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ") + "."
	case n.Gates.Problem != "" || n.Incidents.Problem != "":
		return "It is not known whether something is wrong."
	}
	return "Nothing is wrong that this installation knows of."
}

// Urgent reports whether a person has to do something.
func (n nowPage) Urgent() bool { return n.Gates.Waiting > 0 }
