package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/testsuite"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// maxIssues is the maximum number of issues in a drawn verdict.
const maxIssues = 3

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

// often returns true nine times out of ten.
func often(t *rapid.T, label string) bool { return rapid.IntRange(0, 9).Draw(t, label) < 9 }

func drawServices(t *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"web", "db", "tv"}), 1, 3, rapid.ID).Draw(t, "services")
}

// drawSpelled draws services in the same way as drawServices, or none. It changes the spelling of some.
func drawSpelled(t *rapid.T) []string {
	if !often(t, "names services") {
		return nil
	}
	services := drawServices(t)
	for i, service := range services {
		services[i] = pick(t, "spelled", service, service, strings.ToUpper(service), " "+service)
	}
	return services
}

func drawPolicy(t *rapid.T) escalation.Policy {
	limit := func(label string) escalation.Limit {
		return escalation.Limit{Max: rapid.IntRange(0, 3).Draw(t, label), Window: escalation.Duration(pick(t, label, 0, time.Hour, 4*time.Hour))}
	}
	policy := testPolicy()
	for i := range policy.Tiers {
		policy.Tiers[i].BudgetUSD = pick(t, "tier budget", 0, 0.5, 2)
	}
	policy.MaxTier = pick(t, "highest tier", escalation.TierFullRepair, escalation.TierFullRepair, escalation.TierSafeRepair, escalation.TierObserve)
	policy.DryRun = !often(t, "no dry run")
	policy.Continuity = pick(t, "continuity", escalation.ContinuityAuto, escalation.ContinuityHandoffOnly)
	policy.ResumeMaxTokens = pick(t, "resume max tokens", 0, 50_000)
	policy.Notify = true
	policy.ChainBudgetUSD = pick(t, "chain budget", 0, 0.05, 0.6, 3)
	policy.DayBudgetUSD = pick(t, "day budget", 0.0, 0, 1, 6)
	policy.Cooldowns = escalation.Cooldowns{
		Restarts: limit("restarts"), Redeployments: limit("redeployments"),
		MaxWait: escalation.Duration(pick(t, "longest wait", 6*time.Hour, 30*time.Minute, 0)),
	}
	policy.EscalationLimit = limit("escalations")
	policy.MaxParallelIssues = rapid.IntRange(0, 2).Draw(t, "parallel issues")
	policy.Gate = drawGatePolicy(t)
	return policy
}

func drawGatePolicy(t *rapid.T) escalation.GatePolicy {
	policy := escalation.GatePolicy{
		Timeout:   escalation.Duration(pick(t, "gate timeout", 0, 2*time.Hour, 72*time.Hour)),
		OnTimeout: pick(t, "gate on timeout", escalation.GateAbort, escalation.GateFix),
	}
	if rapid.Bool().Draw(t, "reminds") {
		policy.Remind = []escalation.Duration{escalation.Duration(10 * time.Minute), escalation.Duration(time.Hour)}
	}
	return policy
}

// agentRun describes how an agent ends.
type agentRun struct {
	status  escalation.SessionStatus
	verdict escalation.VerdictStatus // "" for no verdict
	costUSD float64
	asksFor escalation.Tier
	// complete reports whether the verdict has all the fields that a handoff needs.
	complete bool
	services []string
	actions  []escalation.Action
	issues   []escalation.Issue
	// nameless reports that the CLI returned no session id. crowded reports that the conversation is long.
	nameless, crowded bool
	// breaks reports that the activity fails.
	breaks   bool
	attempts int
}

func drawRun(t *rapid.T) agentRun {
	run := agentRun{status: escalation.SessionCompleted, verdict: escalation.VerdictEscalate, services: drawServices(t)}
	if !often(t, "completes") {
		run.status = pick(t, "status", escalation.SessionResumeFailed, escalation.SessionTranscriptLost, escalation.SessionTimedOut,
			escalation.SessionBudgetExhausted, escalation.SessionFailed, escalation.SessionStopped)
	}
	if pick(t, "concludes otherwise", false, false, true) {
		run.verdict = pick(t, "verdict", escalation.VerdictHealthy, escalation.VerdictResolved, escalation.VerdictNeedsHuman,
			escalation.VerdictFailed, "")
	}
	run.costUSD = pick(t, "cost", 0.01, 0, 0.2, 1.5)
	run.asksFor = escalation.Tier(rapid.IntRange(0, 3).Draw(t, "asks for"))
	run.complete, run.nameless = rapid.Bool().Draw(t, "complete"), !often(t, "named")
	run.crowded, run.breaks = rapid.Bool().Draw(t, "crowded"), !often(t, "is judged")
	run.attempts = rapid.IntRange(1, 2).Draw(t, "attempts")
	for range rapid.IntRange(0, 2).Draw(t, "actions") {
		run.actions = append(run.actions, escalation.Action{
			Kind:    pick(t, "kind", escalation.ActionRestart, escalation.ActionRedeployment, escalation.ActionOther),
			Service: pick(t, "acted on", "web", "db"),
		})
	}
	for i := range pick(t, "issues", 0, 0, 2, maxIssues) {
		run.issues = append(run.issues, escalation.Issue{
			Summary: fmt.Sprint("issue ", i+1), Services: []string{fmt.Sprint("service-", i+1)}, Severity: escalation.SeverityWarning,
			RecommendedTier: escalation.Tier(rapid.IntRange(0, 3).Draw(t, "issue asks for")),
		})
	}
	return run
}

func (r agentRun) conclusion(tier escalation.Tier) *escalation.Verdict {
	verdict := &escalation.Verdict{
		Status: r.verdict, Summary: fmt.Sprintf("what %s saw", tier), Services: r.services, RecommendedTier: r.asksFor,
		Actions: r.actions, Issues: r.issues,
	}
	if r.complete {
		verdict.Findings, verdict.Remediation = "found", "tried"
		verdict.Checks = []escalation.CheckResult{{Service: "web", CheckType: "http", Status: escalation.CheckDown}}
	}
	return verdict
}

func (r agentRun) report(input activities.RunTierInput) escalation.Report {
	report := escalation.Report{
		Status: r.status, Cost: escalation.Cost{CostUSD: r.costUSD}, ContextTokens: 20_000, ContextWindow: 200_000, Turns: 3,
		ReportedSessionID: input.SessionID, Attempts: r.attempts,
	}
	if r.crowded {
		report.ContextTokens = 170_000
	}
	if r.nameless {
		report.ReportedSessionID = ""
	}
	switch {
	case r.status != escalation.SessionCompleted:
		report.Error = "what went wrong"
	case r.verdict != "":
		report.Verdict = r.conclusion(input.Tier)
	}
	return report
}

// otherID returns the id of a conversation of another chain.
func otherID(number int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", number) }

// drawOthers records sessions of other chains. Some have ended, and the others end some time after start.
func (w *trial) drawOthers(t *rapid.T, env *testsuite.TestWorkflowEnvironment, start time.Time) {
	ctx, lenient := context.Background(), testPolicy()
	for number := range rapid.IntRange(0, 3).Draw(t, "others") {
		chainID := fmt.Sprint("other-", number)
		run := drawRun(t)
		session := escalation.Session{
			ChainID: chainID, SessionID: otherID(number), Tier: pick(t, "other tier", escalation.Tiers()...),
			StartedAt: start.Add(-time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes ago")) * time.Minute),
			Report:    escalation.Report{Status: escalation.SessionRunning},
		}
		opening, err := w.records.OpenSession(ctx, session, escalation.AdmissionRequest{Services: run.services}, lenient)
		if err != nil || opening.Refusal != nil {
			continue // an earlier one has locked its services
		}
		report := run.report(activities.RunTierInput{SessionID: session.SessionID, Tier: session.Tier})
		end := func() {
			_ = w.records.CloseSession(ctx, session.SessionID, report, env.Now())
			_ = w.records.ReleaseServices(ctx, chainID)
		}
		if rapid.Bool().Draw(t, "has ended") {
			end()
			continue
		}
		env.RegisterDelayedCallback(end, time.Duration(rapid.IntRange(1, 200).Draw(t, "ends after"))*time.Minute)
	}
}

// drawInput draws an input that the policy accepts.
func (w *trial) drawInput(t *rapid.T) workflows.ChainInput {
	input := workflows.ChainInput{DryRun: !often(t, "no dry run asked for"), Force: !often(t, "no force")}
	input.StartTier = escalation.Tier(rapid.IntRange(0, int(w.policy.MaxTier)).Draw(t, "start tier"))
	if rapid.Bool().Draw(t, "limits the tier") {
		input.MaxTier = escalation.Tier(rapid.IntRange(max(1, int(input.StartTier)), 3).Draw(t, "max tier"))
	}
	if rapid.Bool().Draw(t, "names services") {
		input.Services = drawServices(t)
	}
	input.BudgetUSD = pick(t, "budget", 0.0, 0, 1)
	for number, session := range w.records.sessions {
		if !isOpen(session) && rapid.Bool().Draw(t, "goes on") {
			input.ResumeFrom = &workflows.ResumeFrom{SessionID: otherID(number)}
		}
	}
	if !often(t, "knows the conversation") {
		input.ResumeFrom = &workflows.ResumeFrom{SessionID: otherID(99)}
	}
	return input
}

func drawSignal(t *rapid.T) string {
	if !often(t, "means something") {
		return pick(t, "payload", `[2]`, `{"tier":2}`, `{"to_tier":"3"}`)
	}
	return fmt.Sprintf(`{"to_tier":%d,"force":%t}`, rapid.IntRange(0, 4).Draw(t, "to tier"), rapid.Bool().Draw(t, "by force"))
}

// drawReply draws an answer, mostly to a gate that may exist.
func drawReply(t *rapid.T) string {
	if !often(t, "answers something") {
		return pick(t, "reply", `[2]`, `{"gate":"gate-1"}`, `{"gate_id":"gate-1","action":"fix"}`)
	}
	return saidAt(pick(t, "gate", "gate-1", "gate-1", "gate-2", "gate-3"),
		pick(t, "action", escalation.GateContinue, escalation.GateFix, escalation.GateOverride, escalation.GateAbort),
		pick(t, "guidance", "", "mind the proxy"))
}

// branchesOf lists what happened in a chain: its events with the deciding rules, and the purposes of its sessions.
func branchesOf(chain escalation.Chain) []string {
	var branches []string
	for _, event := range chain.Events {
		branch := string(event.Kind)
		if event.Kind == escalation.EventDecision {
			branch, _, _ = strings.Cut(event.Message, ":") // the action and its rule
		}
		branches = append(branches, branch)
	}
	for _, session := range chain.Sessions {
		branches = append(branches, string(session.Purpose)+"/"+string(session.ContinuityReason))
	}
	for i := range chain.Gates {
		branches = append(branches, fmt.Sprintf("gate %s/%s", chain.Gates[i].Source, chain.Gates[i].Answer.Action))
	}
	return branches
}
