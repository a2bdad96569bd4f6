// Package chaintest holds sample chains, and helpers for golden files, for tests of the commands.
package chaintest

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
)

var update = flag.Bool("update", false, "write the golden files")

// Update reports whether the flag -update is set. With this flag, tests write golden files.
func Update() bool { return *update }

// RequireGolden compares got with a file in testdata. If the flag -update is set, it writes the file.
func RequireGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	if Update() {
		require.NoError(t, os.MkdirAll("testdata", 0o700))
		require.NoError(t, os.WriteFile(filepath.Join("testdata", name), got, 0o600))
	}
	want, err := fs.ReadFile(os.DirFS("testdata"), name)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// Noon is the current time for tests whose output shows times.
var Noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// Clock returns Noon.
func Clock() time.Time { return Noon }

// Conversation returns a conversation ID for a number. The same number always gives the same ID, so that the output of
// tests does not change.
func Conversation(number byte) string { return uuid.UUID{15: number}.String() }

// Observed returns an ended session of tier 1.
func Observed() escalation.Session {
	return escalation.Session{
		ID: 1, SessionID: Conversation(1), Tier: escalation.TierObserve, Model: "haiku",
		Continuity: escalation.ContinuityFresh, StartedAt: Noon.Add(-3 * time.Hour),
		Report: escalation.Report{
			Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.03}, DurationMS: 45_000,
			Verdict: &escalation.Verdict{Status: escalation.VerdictEscalate},
		},
	}
}

// Repairing returns a session of tier 2 that has been running for six minutes.
func Repairing() escalation.Session {
	return escalation.Session{
		ID: 2, ParentID: 1, SessionID: Conversation(2),
		Tier: escalation.TierSafeRepair, Model: "sonnet", Continuity: escalation.ContinuityResume,
		StartedAt: Noon.Add(-6 * time.Minute), Report: escalation.Report{Status: escalation.SessionRunning},
	}
}

// Interrupted returns the session of Repairing after a time limit has stopped it.
func Interrupted() escalation.Session {
	session := Repairing()
	session.Report = escalation.Report{
		Status: escalation.SessionTimedOut, Cost: escalation.Cost{CostUSD: 0.5}, DurationMS: 300_000,
		Error: "it ran for more than 5m0s",
	}
	return session
}

// OpenedGate returns a gate that offers to continue the interrupted session.
func OpenedGate() escalation.Gate {
	return escalation.Gate{
		ID: "gate-1", Source: escalation.GateTimedOut, Tier: escalation.TierSafeRepair, SessionID: Conversation(2),
		Rule:   escalation.RuleNoVerdict,
		Reason: "tier 2 ended without a verdict (took too long): it ran for more than 5m0s",
		Faults: []escalation.ChainIncident{{
			ID: "incident-7", Services: []string{"jellyfin"}, Severity: escalation.SeverityCritical,
			Summary: "jellyfin answers 502", Since: Noon.Add(-3 * time.Hour),
		}},
		Found: "its process ends 40 s after each start, because the disk of its cache is full (tier 1)",
		GateNotes: escalation.GateNotes{
			DeniedCalls: []string{"rm -rf /var/cache/jellyfin: no tier deletes folders"}, Denied: 1,
			Cooldowns: []escalation.ServiceState{{Service: "jellyfin", Restarts: escalation.Use{
				Used: 2, Free: true, Limit: escalation.Limit{Max: 3, Window: escalation.Duration(4 * time.Hour)},
			}}},
		},
		Tried: []string{
			"tier 1 looked, and asks for tier 2: jellyfin answers 502",
			"tier 2 restarted jellyfin, and was in the middle of `./jellyfin status` when its time was over",
		},
		Cost:     escalation.Cost{CostUSD: 0.53},
		OpenedAt: Noon.Add(-125 * time.Minute), ExpiresAt: Noon.Add(70 * time.Hour), OnTimeout: escalation.GateAbort,
		Options: []escalation.GateAction{
			escalation.GateContinue, escalation.GateFix, escalation.GateRecheck, escalation.GateOverride,
			escalation.GateAbort,
		},
		Continuation: &escalation.Continuation{
			SessionID: Conversation(2), Tier: escalation.TierSafeRepair, Status: escalation.SessionTimedOut,
		},
	}
}

// BareGate returns a gate without a session to continue. Its texts come from a hostile agent.
func BareGate() escalation.Gate {
	gate := OpenedGate()
	gate.Source, gate.Options, gate.Continuation = escalation.GateFailed, gate.Options[1:], nil
	gate.Reason = "tier 2 could not do its work: \x1b]0;owned\x07\x1b[2J\x1b[31mtake\u202e over\r\nnow"
	gate.Tried = []string{"\x1b[5mtier 2 went on with the session, and failed"}
	gate.Faults, gate.Found = nil, ""
	gate.NoContinuation = "the session was itself a continuation, and it failed"
	return gate
}

// Waiting returns a chain that waits at gate.
func Waiting(gate escalation.Gate) escalation.Chain {
	return escalation.Chain{
		Trigger: escalation.TriggerManual, Services: []string{"jellyfin"}, MaxTier: escalation.TierFullRepair,
		StartedAt: Noon.Add(-3 * time.Hour), CostUSD: 0.53,
		Sessions: []escalation.Session{Observed(), Interrupted()},
		Gates:    []escalation.Gate{gate},
		Events: []escalation.Event{{
			Key: "1", At: Noon.Add(-3 * time.Hour),
			Message: "chain started (manual), highest tier 3",
		}},
	}
}

// Overridden returns the chain of Waiting after a person has accepted the state of the service.
func Overridden(gate escalation.Gate) escalation.Chain {
	chain := Waiting(gate)
	chain.Gates[0].Answer = &escalation.GateClosing{Action: escalation.GateOverride, Actor: "ada", At: Noon}
	chain.Outcome, chain.Reason, chain.EndedAt = escalation.OutcomeOverridden, "ada accepts the state", Noon
	ended := escalation.Event{
		Key: "2", At: Noon, Message: "chain ended after 2 sessions for $0.53: accepted by a person",
	}
	chain.Events = append(chain.Events, ended)
	return chain
}

// Working returns a chain whose second tier is running.
func Working() escalation.Chain {
	chain := Waiting(escalation.Gate{})
	chain.Gates, chain.CostUSD = nil, 0.03
	chain.Sessions[1] = Repairing()
	return chain
}

// Pausing returns a chain that waits for the end of a cooldown.
func Pausing() escalation.Chain {
	chain := Working()
	chain.Sessions = chain.Sessions[:1]
	chain.Wait = &escalation.Wait{
		Rule: escalation.RuleCooldown, Reason: "jellyfin was restarted twice",
		Since: Noon.Add(-time.Hour), Until: Noon.Add(90 * time.Minute),
	}
	return chain
}

// Objected returns a review of a change that is not approved. A finding comes from a hostile agent.
func Objected() escalation.Review {
	return escalation.Review{
		AuthorID: Conversation(2), ReviewerID: Conversation(3), Branch: "claudeops/chain-42", Base: "b0", Commit: "c1",
		Files: 1, Lines: 2, Checks: "passed", Status: "not_ready", Rule: "limit",
		Reason:   "findings block: P1 wrong-port (compose.yaml:4)",
		Findings: []string{"P1 wrong-port (compose.yaml:4): \x1b]0;owned\x07\x1b[2J<b>take</b> over"},
	}
}

// ToolsInFlight returns a heartbeat of the session of Repairing.
func ToolsInFlight() *activities.TierProgress {
	return &activities.TierProgress{
		SessionID: Conversation(2), Host: "host-1", WorkerPID: 4711, Attempt: 2,
		Spent: escalation.Report{Cost: escalation.Cost{CostUSD: 0.1}},
		Now: activities.AgentProgress{CostUSD: 0.02, Tools: []activities.ToolCall{
			{Number: 1, Name: "Bash", Input: "./jellyfin restart", State: activities.ToolDone},
			{Number: 2, Name: "Bash\x1b]0;owned\x07", Input: "./jellyfin status\x1b[2J", State: activities.ToolRunning},
		}},
	}
}

// HostileFailure is an attempt's error in the words of a hostile agent.
const HostileFailure = "the API call failed: Connection refused\x1b]0;owned\x07\x1b[2J\r\nby the agent"

// Climbed returns a chain that has run all tiers. In Tier 2, resuming failed, and a new session started from a handoff.
func Climbed() escalation.Chain {
	session := func(id, parent int64, tier escalation.Tier, model string, cost float64,
		took time.Duration,
	) escalation.Session {
		return escalation.Session{
			ID: id, ParentID: parent, Tier: tier, Model: model, Continuity: escalation.ContinuityResume,
			Report: escalation.Report{
				Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: cost},
				DurationMS: took.Milliseconds(), Verdict: &escalation.Verdict{Status: escalation.VerdictEscalate},
			},
		}
	}
	chain := escalation.Chain{
		ID: "chain-42", Services: []string{"jellyfin"}, CostUSD: 2.5043,
		Outcome: escalation.OutcomeResolved, Reason: "tier 3 resolved the problem",
		Sessions: []escalation.Session{
			session(18, 0, 1, "haiku", 0.03, 45*time.Second),
			session(19, 18, 2, "sonnet", 0.0043, 1500*time.Millisecond),
			session(20, 18, 2, "sonnet", 0.47, 2*time.Minute),
			session(21, 20, 3, "opus", 2, 5*time.Minute),
		},
	}
	chain.Sessions[0].Continuity = escalation.ContinuityFresh
	chain.Sessions[1].Status, chain.Sessions[1].Verdict = escalation.SessionResumeFailed, nil
	chain.Sessions[2].Continuity = escalation.ContinuityHandoff
	chain.Sessions[3].Verdict = &escalation.Verdict{Status: escalation.VerdictResolved}
	chain.Sessions[3].ContinuityReason = escalation.ReasonInterrupted
	return chain
}

// Bash returns the decision on a shell command. If reason is empty, the decision allows the command. If not, it denies
// the command.
func Bash(sessionID string, minute int, command, reason string) escalation.CallDecision {
	input, err := json.Marshal(map[string]string{"description": "Do it", "command": command})
	if err != nil {
		panic(err)
	}
	return escalation.CallDecision{
		ChainID: "chain-42", SessionID: sessionID, Call: fmt.Sprint("call ", minute), Tier: escalation.TierObserve,
		Tool: "Bash", At: Noon.Add(time.Duration(minute) * time.Minute), Input: string(input), Allowed: reason == "",
		Reason: reason,
	}
}
