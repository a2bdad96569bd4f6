package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

const (
	// handoffTimeout bounds the invocation that only writes a handoff: one long answer.
	handoffTimeout = escalation.Duration(3 * time.Minute)
	// handoffTurns leaves room for a few calls that fail, and for a last word.
	handoffTurns = 6
)

// WriteHandoffInput asks a tier that has concluded for the handoff to the next.
type WriteHandoffInput struct {
	ChainID string `json:"chain_id"`
	// SessionID is the conversation to write, a fork of ParentSessionID, the one that concluded.
	SessionID       string            `json:"session_id"`
	ParentSessionID string            `json:"parent_session_id"`
	Tier            escalation.Tier   `json:"tier"`
	Next            escalation.Tier   `json:"next"`
	Policy          escalation.Policy `json:"policy"`
	// Directory is where the agent works; empty for the usual place.
	Directory string `json:"directory,omitempty"`
	// Missing are the fields that the verdict lacks.
	Missing   []string                  `json:"missing,omitempty"`
	Cooldowns []escalation.ServiceState `json:"cooldowns,omitempty"`
	// BudgetUSD is what the session may spend over all its attempts, in US dollars; 0 leaves that to
	// the policy of the tier.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
}

// WriteHandoffResult is what the tier left.
type WriteHandoffResult struct {
	Report escalation.Report `json:"report"`
	// Handoff is nil if the tier left none that can be used; Problem then says why.
	Handoff *escalation.Handoff `json:"handoff,omitempty"`
	Problem string              `json:"problem,omitempty"`
	// EndedAt is the end of the session by the worker's clock.
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// WriteHandoff lets a tier that has concluded write its handoff, in a fork of its conversation and
// with no other means than that. The file is gone afterwards: its content is in the result.
//
// An agent that leaves nothing, or nothing that can be used, is a result. The error is that of
// RunTier.
func (t *Tiers) WriteHandoff(ctx context.Context, input WriteHandoffInput) (WriteHandoffResult, error) {
	work := func(agent context.Context, past TierProgress, beats *heartbeater) (AgentReport, error) {
		return t.requestHandoff(agent, input, past, beats)
	}
	report, err := t.supervise(ctx, input.SessionID, work)
	if err != nil {
		return WriteHandoffResult{}, err
	}
	result := WriteHandoffResult{Report: report.Report, EndedAt: now()}
	result.Handoff, result.Problem = input.read(report)
	return result, nil
}

// requestHandoff asks for the handoff. A repeated attempt asks again: what the attempt before has
// left, if it has, is gone.
func (t *Tiers) requestHandoff(ctx context.Context, input WriteHandoffInput, past TierProgress, beats *heartbeater) (AgentReport, error) {
	known, err := t.Agent.HasConversation(ctx, input.Directory, input.SessionID)
	if err != nil {
		return AgentReport{}, err
	}
	file := chainFile(input.ChainID, HandoffFile)
	prompt, err := t.Prompts.HandoffRequest(prompts.HandoffRequest{
		File: file, From: input.Tier, Next: input.Next, Missing: input.Missing,
	})
	if err != nil {
		return AgentReport{}, fmt.Errorf("%w of a handoff from %s: %w", errPrompt, input.Tier, err)
	}
	run := AgentRun{
		ChainID: input.ChainID, Tier: input.Tier, DryRun: input.Policy.DryRun, Policy: input.policy(file),
		SessionID: input.SessionID, Resume: input.ParentSessionID, Directory: input.Directory,
		Prompt: prompt, Cooldowns: input.Cooldowns, LeavesHandoff: true,
	}
	if known {
		run.Resume = input.SessionID
	}
	run, left := run.after(past.Spent)
	if !left {
		return exhausted(past.Spent), nil
	}
	report, err := t.Agent.Run(ctx, run, beats.observe)
	report.Interrupted = known
	return report, err
}

// policy grants the tier's model nothing but to write file. Rules of the CLI about its Write tool go
// by the name of Edit; one that says Write grants nothing.
func (i WriteHandoffInput) policy(file string) escalation.TierPolicy {
	policy := i.Policy.For(i.Tier)
	policy.Tools, policy.AllowedTools, policy.DisallowedTools = []string{"Write"}, []string{"Edit(./" + file + ")"}, nil
	policy.BudgetUSD = budget(i.BudgetUSD, policy)
	return brief(policy, handoffTimeout, handoffTurns)
}

// read returns the handoff that the agent left, or what is wrong with it.
func (i WriteHandoffInput) read(report AgentReport) (*escalation.Handoff, string) {
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
	handoff.Cooldowns = escalation.NewCooldownState(i.Cooldowns)
	return &handoff, ""
}
