package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

const (
	// handoffTimeout limits the time of an invocation that only writes a handoff. Such an invocation gives one long
	// answer.
	handoffTimeout = escalation.Duration(3 * time.Minute)
	// handoffTurns limits the turns of an invocation that only writes a handoff. The limit leaves room for a few failed
	// calls and a final answer.
	handoffTurns = 6
)

// WriteHandoffInput asks a tier that has ended to write the handoff to the next tier.
type WriteHandoffInput struct {
	ChainID string `json:"chain_id"`
	// SessionID is the conversation in which the handoff is written. This conversation is a fork of ParentSessionID,
	// the conversation of the tier that has ended.
	SessionID       string            `json:"session_id"`
	ParentSessionID string            `json:"parent_session_id"`
	Tier            escalation.Tier   `json:"tier"`
	Next            escalation.Tier   `json:"next"`
	Policy          escalation.Policy `json:"policy"`
	// Directory is the agent's working directory; empty for the default one.
	Directory string `json:"directory,omitempty"`
	// Missing lists the handoff fields that the verdict lacks.
	Missing   []string                  `json:"missing,omitempty"`
	Cooldowns []escalation.ServiceState `json:"cooldowns,omitempty"`
	// BudgetUSD limits the spending of the session over all its attempts, in US dollars; 0 for the limit in the tier's
	// policy.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
}

// WriteHandoffResult is the result of WriteHandoff.
type WriteHandoffResult struct {
	Report escalation.Report `json:"report"`
	// Handoff is nil if the tier wrote no usable handoff. Problem then gives the reason.
	Handoff *escalation.Handoff `json:"handoff,omitempty"`
	Problem string              `json:"problem,omitempty"`
	// EndedAt is the end of the session by Temporal's clock.
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// WriteHandoff lets a tier that has ended write its handoff, in a fork of its conversation. The agent is permitted to
// write HandoffFile and nothing else. Afterwards WriteHandoff removes that file and returns its content.
//
// If the agent writes no usable handoff, this is a result and not an error. The errors are the same as those of
// RunTier.
func (t *Tiers) WriteHandoff(ctx context.Context, input WriteHandoffInput) (WriteHandoffResult, error) {
	file := chainFile(input.ChainID, HandoffFile)
	prompt := func() (string, error) {
		return t.Prompts.HandoffRequest(prompts.HandoffRequest{
			File: file, From: input.Tier, Next: input.Next,
			Missing: input.Missing,
		})
	}
	session, err := t.runSession(ctx, role{
		name: "a handoff from " + input.Tier.String(), purpose: escalation.PurposeHandoff,
		heartbeat: input.Policy.HeartbeatInterval(), budgetUSD: input.BudgetUSD,
		run: AgentRun{
			ChainID: input.ChainID, Tier: input.Tier, DryRun: input.Policy.DryRun, Policy: input.policy(file),
			SessionID: input.SessionID, Resume: input.ParentSessionID, Directory: input.Directory,
			ChainFiles: true, Cooldowns: input.Cooldowns, LeavesHandoff: true,
		},
		prompt: func(context.Context, *prompts.Interruption) (string, error) { return prompt() },
		// the file of an earlier attempt is gone
		goOn: func(context.Context, prompts.Interruption) (string, error) { return prompt() },
	})
	if err != nil {
		return WriteHandoffResult{}, err
	}
	result := WriteHandoffResult{Report: session.Report, EndedAt: session.at}
	result.Handoff, result.Problem = input.read(session.AgentReport, t.Catalog)
	return result, nil
}

// policy returns a policy that permits the agent to write the given file and nothing else. The CLI's permission rules
// for its Write tool begin with Edit. A rule that begins with Write permits nothing.
func (i WriteHandoffInput) policy(file string) escalation.TierPolicy {
	policy := i.Policy.For(i.Tier)
	policy.Tools, policy.AllowedTools = []string{"Write"}, []string{"Edit(./" + file + ")"}
	return brief(policy, handoffTimeout, handoffTurns)
}

// read returns the handoff that the agent wrote, with canonical names of services. If there is no usable handoff, read
// returns the reason.
func (i WriteHandoffInput) read(report AgentReport, catalog *escalation.Catalog) (*escalation.Handoff, string) {
	switch {
	case report.Handoff.Problem != "":
		return nil, fmt.Sprintf("%s left no handoff that can be used: %s", i.Tier, report.Handoff.Problem)
	case report.Handoff.Content == nil && report.Status != escalation.SessionCompleted:
		return nil, fmt.Sprintf("%s left no handoff; it ended %s: %s", i.Tier, report.Status, report.Error)
	case report.Handoff.Content == nil:
		return nil, fmt.Sprintf("%s left no handoff", i.Tier)
	}
	handoff, err := escalation.DecodeHandoff(report.Handoff.Content, i.Tier, i.Next)
	if err != nil {
		return nil, fmt.Sprintf("%s left an %s", i.Tier, err)
	}
	handoff = catalog.Handoff(handoff)
	handoff.Cooldowns = escalation.NewCooldownState(i.Cooldowns)
	return &handoff, ""
}
