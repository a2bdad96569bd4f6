package config

import (
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// defaults returns the configuration for an empty environment. It omits the values that the function resolve derives
// from the environment. Each number has its reason beside it.
func defaults() Config {
	return Config{
		Chain: Chain{
			MaxTier:         escalation.TierFullRepair,
			Continuity:      escalation.ContinuityAuto,
			ResumeThreshold: 0.80, // leaves a fifth of the window for the tier's own work
		},
		Limits: limits(),
		Gate: Gate{
			Timeout:   72 * time.Hour, // covers a weekend
			Remind:    DurationList{time.Hour, 6 * time.Hour, 24 * time.Hour},
			OnHealed:  escalation.HealedClose, // one look costs a few cents, and nobody needs to answer
			OnTimeout: escalation.GateAbort,   // spends money only on repairs that an operator asked for
		},
		State: State{
			DatabaseConnections: 4, // one writes; the others read for the sweep, the guard and the chains
		},
		Claude: Claude{
			Path: "claude",
			// usually a second or two; more on a loaded host or with a large transcript
			FirstByteTimeout: 2 * time.Minute,
			// the CLI is silent while a command runs, and a playbook takes up to half an hour
			IdleTimeout: 31 * time.Minute,
			// the CLI needs one; with frequent heartbeats, a cancelled agent must end within five
			StopGrace:   3 * time.Second,
			Containment: ContainmentAuto,
			Sandbox:     SandboxAuto,
			Worktrees:   WorktreesAuto,
			SessionDisk: 4096, // room for clones and builds of a repair
			APIRetries:  5,    // well under a minute of backoff; Temporal retries after longer waits
		},
		Tiers:  Tiers{Tier1: tier1(), Tier2: tier2(), Tier3: tier3()},
		Review: defaultReview(),
		Author: Author{Tier: escalation.TierSafeRepair, Role: Role{
			Model:     "sonnet",
			Timeout:   60 * time.Minute, // writes and tests one phase of a plan
			BudgetUSD: 5,                // several times a normal phase
		}},
		Talk: Talk{
			Model:     "sonnet",         // a person notices the difference to haiku; a turn costs some cents either way
			Timeout:   10 * time.Minute, // a person waits; a look at a dozen services takes less
			BudgetUSD: 1,                // several times a turn with a long conversation and a few looks
			PerPerson: 1,                // so that others are answered meanwhile
		},
		Worker: Worker{
			TaskQueue:           "claudeops",
			MaxConcurrentAgents: 2, // each agent takes up to 300 MB from its start
			MaxConcurrentTalks:  2, // one more than a person has at the same time
			// six heartbeats a minute; a cancelled chain's agent ends within 15 seconds
			HeartbeatInterval: longestHeartbeat,
			// plus StopGrace, it is less than the 30 seconds that Kubernetes allows
			DrainTimeout: 20 * time.Second,
		},
		Web: defaultWeb(),
		Log: Log{Level: LogInfo, Format: LogText},
	}
}

func limits() Limits {
	within := func(times int, span time.Duration) Limit { return Limit{Max: times, Window: escalation.Duration(span)} }
	return Limits{
		ChainBudgetUSD: 10, // Tiers 1 and 2 with their whole budgets, and most of Tier 3's
		// two bad chains and the looks of a day; nobody is surprised by a bill
		DayBudgetUSD: 25,
		// equal to MaxParallelIssues, so that one cycle can repair that many issues
		Escalations: within(3, time.Hour),
		Restarts:    within(2, 4*time.Hour), // a third would hide a fault that restarts do not repair
		// a second one on the same day would repeat a repair that did not help
		Redeployments: within(1, 24*time.Hour),
		Returns:       within(3, 7*24*time.Hour), // three repairs in a week did not remove the cause
		// longer than the window of Restarts; a day would be too late to ask an operator
		MaxWait: 6 * time.Hour,
		// few agents run at a time (MaxConcurrentAgents), and other people need the services
		MaxParallelIssues: 3,
	}
}

// window is the smallest context window of all models, in tokens. It applies until the CLI has reported that of a
// model.
const window = 200_000

func tier1() Tier {
	return Tier{
		Model:     "haiku",
		Tools:     ToolList{"Bash", "Read", "Grep", "Glob"},
		Timeout:   15 * time.Minute, // enough to check a few dozen services
		BudgetUSD: 0.50,             // a normal check costs a few cents
	}
}

func tier2() Tier {
	return Tier{
		Model:     "sonnet",
		Tools:     ToolList{"Bash", "Read", "Grep", "Glob", "Edit", "Write"},
		Timeout:   30 * time.Minute, // a few restarts, with a wait for the effect of each
		BudgetUSD: 2.50,             // several times a normal repair
	}
}

func tier3() Tier {
	return Tier{
		Model:     "opus",
		Tools:     ToolList{"Bash", "Read", "Grep", "Glob", "Edit", "Write"},
		Timeout:   60 * time.Minute, // a redeployment by playbook takes tens of minutes
		BudgetUSD: 10,               // several times a normal redeployment
	}
}
