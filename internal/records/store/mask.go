package store

import (
	"encoding/json"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
)

// This file masks secrets in the texts of people, who can start chains and answer gates with programs other than this
// one. It also masks the texts of agents a second time. Package claude has already masked the CLI's output, and
// package agent has already masked the files that agents leave. IDs, times and the supervisor's own texts stay
// unchanged.

// text returns text with its secrets masked.
func (h Hooks) text(text string) string {
	if h.Mask == nil {
		return text
	}
	return h.Mask.Text(text)
}

// maskedJSON returns v with the secrets in its texts masked. A value that cannot be encoded as JSON stays unchanged:
// the store refuses it, too.
func maskedJSON[T any](h Hooks, v T) T {
	document, err := json.Marshal(v)
	var masked T
	if h.Mask == nil || err != nil || json.Unmarshal(h.Mask.JSON(document), &masked) != nil {
		return v
	}
	return masked
}

func (h Hooks) proposal(proposal escalation.MemoryProposal) escalation.MemoryProposal {
	proposal.Service, proposal.Subject, proposal.Text = h.text(proposal.Service), h.text(proposal.Subject),
		h.text(proposal.Text)
	return proposal
}

func (h Hooks) report(report escalation.Report) escalation.Report {
	if report.Verdict != nil {
		report.Verdict = maskedJSON(h, report.Verdict)
	}
	report.Error = h.text(report.Error)
	return report
}

func (h Hooks) events(events []escalation.Event) []escalation.Event {
	masked := slices.Clone(events)
	for i := range masked {
		masked[i].Message = h.text(masked[i].Message)
	}
	return masked
}

func (h Hooks) chain(chain escalation.Chain) escalation.Chain {
	chain.Sessions = slices.Clone(chain.Sessions)
	for i := range chain.Sessions {
		chain.Sessions[i].Report = h.report(chain.Sessions[i].Report)
	}
	chain.Gates = slices.Clone(chain.Gates)
	for i := range chain.Gates {
		chain.Gates[i].Reason = h.text(chain.Gates[i].Reason)
	}
	chain.Events, chain.Reason = h.events(chain.Events), h.text(chain.Reason)
	return chain
}

// decisions masks the whole input of a call, before the store cuts it. In a cut text, a secret could lack the end by
// which it is recognised.
func (h Hooks) decisions(decisions []escalation.CallDecision) []escalation.CallDecision {
	if h.Mask == nil {
		return decisions
	}
	masked := slices.Clone(decisions)
	for i := range masked {
		masked[i].Input = string(h.Mask.JSON([]byte(masked[i].Input)))
		masked[i].Rule, masked[i].Reason = h.text(masked[i].Rule), h.text(masked[i].Reason)
		masked[i].Actions = h.actions(masked[i].Actions)
	}
	return masked
}

// actions masks the names of services as report does, so that a charge and a verdict have the same names.
func (h Hooks) actions(actions []escalation.CallAction) []escalation.CallAction {
	masked := slices.Clone(actions)
	for i := range masked {
		masked[i].Service = h.text(masked[i].Service)
	}
	return masked
}
