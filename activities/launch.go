package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

// tier returns the role of a tier's session, without its decode.
func (t *Tiers) tier(input RunTierInput) role {
	run := AgentRun{
		ChainID:     input.ChainID,
		FirstRunID:  input.FirstRunID,
		Tier:        input.Tier,
		Repairs:     input.Tier >= escalation.TierSafeRepair && !input.Policy.DryRun && !input.Recheck,
		Inspect:     input.Inspect,
		Since:       input.Since,
		Base:        input.Base,
		Carry:       input.Carry,
		At:          input.At,
		Interrupted: input.Continues || input.Unseen,
		InWorktree:  t.Prompts.Worktree,
		DryRun:      input.Policy.DryRun,
		Policy:      input.Policy.For(input.Tier),
		SessionID:   input.SessionID,
		Directory:   input.Directory,
		Schema:      escalation.VerdictSchema,
		ChainFiles:  true,
		Cooldowns:   input.Cooldowns,
		Limits:      input.Policy.Cooldowns,
	}
	if input.Continuity == escalation.ContinuityResume {
		run.Resume = input.ParentSessionID
	}
	return role{
		name: input.Tier.String(), purpose: escalation.PurposeTier, heartbeat: input.Policy.HeartbeatInterval(),
		budgetUSD: input.BudgetUSD, run: run, output: "verdict", repair: t.Prompts.Repair,
		prompt: func(ctx context.Context, cutOff *prompts.Interruption) (string, error) {
			return t.openingPrompt(ctx, input, cutOff)
		},
	}
}

// callsOf converts tool calls that have no result, for use in a prompt.
func callsOf(inFlight []ToolCall) []prompts.Call {
	var calls []prompts.Call
	for _, call := range inFlight {
		calls = append(calls, prompts.Call{Tool: call.Name, Input: call.Input})
	}
	return calls
}

func (t *Tiers) openingPrompt(ctx context.Context, input RunTierInput, cutOff *prompts.Interruption) (string, error) {
	launch := prompts.Launch{
		Tier: input.Tier, From: input.ParentTier, Policy: input.Policy,
		Services: input.Services, Request: input.Request, Issue: input.Issue, Guidance: input.Guidance,
		Recheck: input.Recheck, CutOff: cutOff, CooldownFile: chainFile(input.ChainID, CooldownFile),
		Brief: t.permissions(input.Tier, input.Policy.DryRun), Catalog: t.Catalog, Affected: input.Affected,
		Instructions: t.instructions(input), Incidents: input.Incidents, Repairs: input.Repairs, Leave: input.Leave,
		Correction: input.Correction.prompt(), Gate: input.Gate,
	}
	if input.Continues {
		return t.Prompts.Continued(launch, callsOf(input.InFlight))
	}
	launch.Memories = t.recall(ctx, input)
	switch input.Continuity {
	case escalation.ContinuityFresh:
		launch.Alert = input.Alert // what follows gets what the look has found
		return t.Prompts.Fresh(launch)
	case escalation.ContinuityResume:
		return t.Prompts.Resumed(launch)
	case escalation.ContinuityHandoff:
		if input.Handoff == nil {
			return "", errors.New("there is no handoff to start from")
		}
		launch.Handoff = input.Handoff.Markdown()
		return t.Prompts.FromHandoff(launch)
	}
	return "", fmt.Errorf("unknown continuity %q", input.Continuity)
}

// permissions returns the description of the tier's permissions for its prompt. In a dry run it describes the
// permissions of Tier 1.
func (t *Tiers) permissions(tier escalation.Tier, dryRun bool) string {
	switch {
	case t.Briefs == nil:
		return ""
	case dryRun:
		return t.Briefs(escalation.TierObserve)
	default:
		return t.Briefs(tier)
	}
}

// prompt converts the correction for a prompt; nil if there is none.
func (c *Correction) prompt() *prompts.Correction {
	if c == nil {
		return nil
	}
	of := &prompts.Correction{Commit: c.Commit, CheckOutput: c.CheckOutput, Why: c.Why}
	for _, finding := range c.Findings {
		of.Findings = append(of.Findings, finding.Whole())
	}
	return of
}
