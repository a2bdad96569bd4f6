package config

import (
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// defaults returns the configuration of an empty environment, but for what is derived
// from it (see resolve). Every number has its reason beside it.
func defaults() Config {
	return Config{
		Chain: Chain{
			MaxTier:         escalation.TierFullRepair,
			Continuity:      escalation.ContinuityAuto,
			ResumeThreshold: 0.80, // leaves a fifth of the window to the tier's own work
		},
		Limits: limits(),
		Gate: Gate{
			Timeout:   72 * time.Hour, // a weekend
			Remind:    DurationList{time.Hour, 6 * time.Hour, 24 * time.Hour},
			OnTimeout: escalation.GateAbort, // money is spent only on what somebody wants
		},
		Claude: Claude{
			Path:             "claude",
			FirstByteTimeout: 2 * time.Minute,  // a second or two, but for a loaded host and a large transcript
			IdleTimeout:      31 * time.Minute, // the CLI is silent while a command runs, and a playbook takes up to half an hour
			StopGrace:        3 * time.Second,  // the CLI takes one; cancelled agents have to be gone within five, heartbeat included
			Containment:      ContainmentAuto,
			Sandbox:          SandboxAuto,
			APIRetries:       5, // well under a minute of backoff; longer waits are Temporal's
		},
		Tiers: Tiers{Tier1: tier1(), Tier2: tier2(), Tier3: tier3()},
		Worker: Worker{
			TaskQueue:           "claudeops",
			MaxConcurrentAgents: 2,                // each takes up to 300 MB before it has done anything
			DrainTimeout:        20 * time.Second, // with StopGrace it fits into the 30 seconds that Kubernetes gives
		},
		Log: Log{Level: LogInfo, Format: LogText},
	}
}

func limits() Limits {
	within := func(times int, span time.Duration) Limit { return Limit{Max: times, Window: escalation.Duration(span)} }
	return Limits{
		Escalations:       within(3, time.Hour),    // as many as MaxParallelIssues: one bad cycle
		Restarts:          within(2, 4*time.Hour),  // a third would hide a fault that restarts do not mend
		Redeployments:     within(1, 24*time.Hour), // a second on one day repeats what did not help
		MaxWait:           6 * time.Hour,           // outlasts a restart's cooldown; a day is too late to ask a person
		MaxParallelIssues: 3,                       // agents are few (MaxConcurrentAgents), and mend what others depend on
	}
}

// window is the context window that every model has at least, in tokens. The CLI reports
// larger ones, and what it reports wins.
const window = 200_000

func tier1() Tier {
	return Tier{
		Model: "haiku", ContextWindow: window,
		Tools:     RuleList{"Bash", "Read", "Grep", "Glob"},
		Timeout:   15 * time.Minute, // a look at a few dozen services
		MaxTurns:  60,
		BudgetUSD: 0.50, // a normal look costs a few cents
	}
}

func tier2() Tier {
	return Tier{
		Model: "sonnet", ContextWindow: window,
		Tools:     RuleList{"Bash", "Read", "Grep", "Glob", "Edit", "Write"},
		Timeout:   30 * time.Minute, // a few restarts, and waiting for each to show its effect
		MaxTurns:  100,
		BudgetUSD: 2.50, // several times a normal repair
	}
}

func tier3() Tier {
	return Tier{
		Model: "opus", ContextWindow: window,
		Tools:     RuleList{"Bash", "Read", "Grep", "Glob", "Edit", "Write"},
		Timeout:   60 * time.Minute, // a redeployment by playbook takes tens of minutes
		MaxTurns:  150,
		BudgetUSD: 10, // several times a normal redeployment
	}
}
