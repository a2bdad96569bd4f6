package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
)

// effect checks what a configuration does. An effect that is nil means that the value is refused.
type effect func(t *testing.T, c Config)

// extremes says what a setting does at values that people type to mean none, everything or never. A value without an
// effect must be refused with a sentence that names the setting. Every setting has a row; an empty value is the
// default.
type extremes struct{ zero, negative, huge, none effect }

// anyText accepts a value that is a name, a path or a text, and has no special meaning.
func anyText(*testing.T, Config) {}

const hugeSpend = 1e6

func admits(t *testing.T, policy escalation.Policy, tier escalation.Tier, budget float64) {
	t.Helper()
	got := escalation.Admit(policy, escalation.AdmissionRequest{Tier: tier, Purpose: escalation.PurposeTier, ChainSpentUSD: hugeSpend},
		escalation.AdmissionFacts{DaySpentUSD: hugeSpend, DayReservedUSD: hugeSpend})
	require.True(t, got.Granted, got.Reason)
	require.InDelta(t, budget, got.BudgetUSD, 1e-9)
}

// free returns the policy of c without the limits of chain and day.
func free(policy escalation.Policy) escalation.Policy {
	policy.ChainBudgetUSD, policy.DayBudgetUSD = 0, 0
	return policy
}

// noCapOf requires that sessions of a policy have no cap.
func noCapOf(of func(Config) escalation.Policy, tier escalation.Tier) effect {
	return func(t *testing.T, c Config) {
		t.Helper()
		admits(t, free(of(c)), tier, 0)
	}
}

// limited requires that a limit permits the given number of events a day.
func limited(of func(Config) escalation.Limit, refuses int) effect {
	return func(t *testing.T, c Config) {
		t.Helper()
		limit := of(c)
		require.Equal(t, refuses >= 0, limit.IsSet())
		if limit.IsSet() {
			require.Equal(t, refuses, limit.Max)
		}
	}
}

func policyOf(c Config) escalation.Policy   { return c.Policy() }
func reviewerOf(c Config) escalation.Policy { return c.Policy().OfReviewer() }
func authorOf(c Config) escalation.Policy   { return c.Policy().OfAuthor() }

func waitOf(want time.Duration) effect {
	return func(t *testing.T, c Config) {
		t.Helper()
		at := time.Unix(1_000_000, 0)
		got := escalation.Admit(free(c.Policy()),
			escalation.AdmissionRequest{Tier: 2, Purpose: escalation.PurposeTier, At: at, Services: []string{"a"}},
			escalation.AdmissionFacts{Busy: []escalation.BusyService{{Service: "a", ChainID: "x"}}, Services: []escalation.ServiceState{{
				Service: "a", Restarts: escalation.Use{Free: true}, Redeployments: escalation.Use{Free: true},
			}}})
		require.False(t, got.Granted)
		require.Equal(t, want > 0, !got.WaitUntil.IsZero(), "a chain that must not wait asks a person")
		require.Equal(t, want, c.Policy().Cooldowns.MaxWait.Std())
	}
}

func resumes(tokens int) effect {
	return func(t *testing.T, c Config) {
		t.Helper()
		input := escalation.ContinuityInput{
			Parent:    &escalation.Session{Report: escalation.Report{ReportedSessionID: "x", ContextTokens: tokens}},
			Threshold: 1, Window: 10 * maxNumber, MaxTokens: c.Policy().ResumeMaxTokens,
		}
		require.Equal(t, escalation.ContinuityResume, escalation.ChooseContinuity(input).Continuity)
	}
}

func gates(want time.Duration) effect {
	return func(t *testing.T, c Config) {
		t.Helper()
		policy, at := c.Policy(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		lost := escalation.Decision{Action: escalation.DecisionComplete, Outcome: escalation.OutcomeNeedsHuman, Reason: "it is broken"}
		decision := escalation.Gated(policy, lost)
		if want == 0 {
			require.Equal(t, lost, decision, "no gate opens: the chain ends, and calls for a person")
		} else {
			require.Equal(t, escalation.DecisionGate, decision.Action)
			gate := escalation.NewGate(policy, escalation.GateInput{Number: 1, At: at, Decision: decision, Tier: 1})
			require.Equal(t, at.Add(want), gate.ExpiresAt)
		}
		require.Equal(t, want > 0, escalation.GatePolicy{Timeout: c.Policy().Gate.Timeout, FourEyes: true}.Restricts())
	}
}

func disk(bytes int64) effect {
	return func(t *testing.T, c Config) {
		t.Helper()
		require.Equal(t, bytes, int64(c.Claude.SessionDisk)<<20)
		require.Positive(t, int64(c.Claude.SessionDisk)<<20)
	}
}

// table has a row for every setting. A setting that is left out of a row's effects refuses the value.
func table() map[string]extremes {
	const big = maxNumber
	days := maxDuration
	budget := func(of func(Config) escalation.Policy, tier escalation.Tier) extremes {
		return extremes{zero: noCapOf(of, tier), huge: func(t *testing.T, c Config) { t.Helper(); admits(t, free(of(c)), tier, big) }}
	}
	limit := func(of func(Config) escalation.Limit) extremes {
		return extremes{zero: limited(of, 0), none: limited(of, -1), huge: limited(of, big)}
	}
	duration := func(of func(Config) time.Duration) extremes {
		return extremes{huge: func(t *testing.T, c Config) { t.Helper(); require.Equal(t, days, of(c)) }}
	}
	text := extremes{anyText, anyText, anyText, anyText}
	return map[string]extremes{
		"MAX_TIER": {}, "DRY_RUN": {zero: func(t *testing.T, c Config) { t.Helper(); require.False(t, c.Policy().DryRun) }},
		"CONTINUITY": {}, "RESUME_CONTEXT_THRESHOLD": {}, "RESUME_MAX_TOKENS": {zero: resumes(2 * big), huge: resumes(big)},

		"CHAIN_BUDGET_USD": {zero: func(t *testing.T, c Config) {
			t.Helper()
			policy := c.Policy()
			policy.DayBudgetUSD = 0
			admits(t, policy, 1, c.Tiers.Tier1.BudgetUSD)
		}, huge: func(t *testing.T, c Config) {
			t.Helper()
			require.InDelta(t, big, c.Policy().ChainBudgetUSD, 0)
		}},
		"DAY_BUDGET_USD": {zero: func(t *testing.T, c Config) {
			t.Helper()
			policy := c.Policy()
			policy.ChainBudgetUSD = 0
			admits(t, policy, 1, c.Tiers.Tier1.BudgetUSD)
			require.Zero(t, c.TalkPolicy().DayBudgetUSD)
		}, huge: func(t *testing.T, c Config) { t.Helper(); require.InDelta(t, big, c.TalkPolicy().DayBudgetUSD, 0) }},
		"ESCALATION_LIMIT":   limit(func(c Config) escalation.Limit { return c.Policy().EscalationLimit }),
		"RESTART_LIMIT":      limit(func(c Config) escalation.Limit { return c.Policy().Cooldowns.Restarts }),
		"REDEPLOYMENT_LIMIT": limit(func(c Config) escalation.Limit { return c.Policy().Cooldowns.Redeployments }),
		"COOLDOWN_OVERRIDES": {
			none: func(t *testing.T, c Config) { t.Helper(); require.Empty(t, c.Policy().Cooldowns.Services) },
		},
		"RETURNS":             {none: limited(func(c Config) escalation.Limit { return c.Policy().Returns }, -1)},
		"COOLDOWN_MAX_WAIT":   {zero: waitOf(0), huge: waitOf(days)},
		"MAX_PARALLEL_ISSUES": {},

		"GATE_TIMEOUT": {zero: gates(0), huge: gates(days)},
		"GATE_REMIND":  {none: func(t *testing.T, c Config) { t.Helper(); require.Empty(t, c.Policy().Gate.Remind) }},
		"GATE_APPROVERS": {zero: func(t *testing.T, c Config) {
			t.Helper()
			require.Error(t, c.Policy().Gate.CheckMayAnswer(escalation.GateAnswer{Actor: "eve"}, ""), "0 is a name")
		}, negative: anyText, huge: anyText},
		"GATE_ON_TIMEOUT": {}, "GATE_ON_HEALED": {}, "GATE_FOUR_EYES": {zero: off(func(c Config) bool { return c.Policy().Gate.FourEyes })},
		"GATE_REQUIRE_VERIFIED": {zero: off(func(c Config) bool { return c.Policy().Gate.RequireVerified })},

		"ENV_FILE": {}, "STATE_DIR": {}, "DATABASE_URL": {}, "DATABASE_CONNECTIONS": {}, "TRANSCRIPTS": {none: anyText},
		"RETENTION": {
			zero: func(t *testing.T, c Config) { t.Helper(); require.Zero(t, c.State.Retention) },
			huge: func(t *testing.T, c Config) { t.Helper(); require.Equal(t, days, c.State.Retention) },
		},
		"ENCRYPTION_KEYS_FILE": {},

		"CLAUDE": text, "CLAUDE_CONFIG_DIR": {},
		"PASS_ENV": {none: func(t *testing.T, c Config) { t.Helper(); require.Empty(t, c.Claude.PassEnv) }},
		"WORK_DIR": {}, "REPOSITORIES": {none: func(t *testing.T, c Config) { t.Helper(); require.Empty(t, c.Policy().Repositories) }},
		"WORKTREES": {}, "ENVIRONMENT": text,
		"FIRST_BYTE_TIMEOUT": {}, // at most TIER1_TIMEOUT
		"IDLE_TIMEOUT":       duration(func(c Config) time.Duration { return c.Claude.IdleTimeout }), "STOP_GRACE": {},
		"CONTAINMENT": {}, "SANDBOX": {},
		"AGENT_USER":   {none: func(t *testing.T, c Config) { t.Helper(); require.False(t, c.Claude.HasAgentUser()) }},
		"SESSION_DISK": {huge: disk(big << 20)},
		"API_RETRIES":  {zero: func(t *testing.T, c Config) { t.Helper(); require.Zero(t, c.Claude.APIRetries) }},

		"TIER1_MODEL": modelName(), "TIER2_MODEL": modelName(), "TIER3_MODEL": modelName(), "REVIEWER_MODEL": modelName(), "AUTHOR_MODEL": modelName(), "TALK_MODEL": modelName(),
		"TIER1_TOOLS": {}, "TIER2_TOOLS": {}, "TIER3_TOOLS": {},
		"TIER1_TIMEOUT":    duration(func(c Config) time.Duration { return c.Policy().For(1).Timeout.Std() }),
		"TIER2_TIMEOUT":    duration(func(c Config) time.Duration { return c.Policy().For(2).Timeout.Std() }),
		"TIER3_TIMEOUT":    duration(func(c Config) time.Duration { return c.Policy().For(3).Timeout.Std() }),
		"REVIEWER_TIMEOUT": duration(func(c Config) time.Duration { return c.Policy().OfReviewer().For(1).Timeout.Std() }),
		"AUTHOR_TIMEOUT":   duration(func(c Config) time.Duration { return c.Policy().OfAuthor().For(2).Timeout.Std() }),
		"TALK_TIMEOUT":     duration(func(c Config) time.Duration { return c.TalkPolicy().For(1).Timeout.Std() }),
		"TIER1_BUDGET_USD": budget(policyOf, 1), "TIER2_BUDGET_USD": budget(policyOf, 2), "TIER3_BUDGET_USD": budget(policyOf, 3),
		"REVIEWER_BUDGET_USD": budget(reviewerOf, 1), "AUTHOR_BUDGET_USD": budget(authorOf, 2),
		"TALK_BUDGET_USD": budget(func(c Config) escalation.Policy { return c.TalkPolicy() }, 1),

		"REVIEW_CHANGES": {none: func(t *testing.T, c Config) {
			t.Helper()
			require.Equal(t, escalation.ReviewNone, c.Policy().Review.Mode)
		}},
		"REVIEW_MAX_FILES": {}, "REVIEW_MAX_LINES": {},
		"REVIEW_MAX_FIXES": {zero: func(t *testing.T, c Config) {
			t.Helper()
			require.Equal(t, review.Limits{}, review.Limits{Fixes: c.Policy().Review.MaxFixes, Retries: c.Policy().Review.MaxFixes})
		}},
		"AUTHOR_TIER":   {},
		"IDENTITY_FILE": {}, "SOUL_FILE": {}, "USER_FILE": {},
		"POLICY_FILE": {}, "SERVICES_FILE": {}, "PROMPT": {}, "TIER2_PROMPT": {}, "TIER3_PROMPT": {},
		"NOTIFY_URLS": {none: func(t *testing.T, c Config) { t.Helper(); require.False(t, c.Policy().Notify) }}, "UI_URL": {},
		"WEB_LISTEN": {}, "WEB_URL": {}, "WEB_TOKENS_FILE": {},
		"WEB_TRUSTED_PROXY":     {none: func(t *testing.T, c Config) { t.Helper(); require.Empty(t, c.Web.TrustedProxy) }},
		"WEB_PROXY_USER_HEADER": text, "WEB_PROXY_GROUPS_HEADER": text,
		"WEB_PROXY_ROLES":       {none: func(t *testing.T, c Config) { t.Helper(); require.Empty(t, c.Web.ProxyRoles) }},
		"WEB_PROXY_SECRET_FILE": {}, "WEB_CHAT_PROGRESS": {zero: off(func(c Config) bool { return c.Web.ChatProgress })},
		"WEB_TLS_CERT_FILE": {}, "WEB_TLS_KEY_FILE": {},
		"TASK_QUEUE": text, "MAX_CONCURRENT_AGENTS": {}, "MAX_CONCURRENT_TALKS": {},
		"TALKS_PER_PERSON": {
			zero: func(t *testing.T, c Config) { t.Helper(); require.Zero(t, c.TalkPolicy().TalksPerPerson) },
			huge: func(t *testing.T, c Config) { t.Helper(); require.Equal(t, big, c.TalkPolicy().TalksPerPerson) },
		},
		"HEARTBEAT_INTERVAL": {},
		"DRAIN_TIMEOUT":      duration(func(c Config) time.Duration { return c.Worker.DrainTimeout }),
		"DEPLOYMENT":         text, "BUILD_ID": {}, // without a deployment
		"LOG_LEVEL": {}, "LOG_FORMAT": {}, "METRICS_ADDRESS": {}, "PPROF_ADDRESS": {},
		"SERVER": text, "TOKEN": text, "TOKEN_FILE": text,
	}
}

func off(of func(Config) bool) effect {
	return func(t *testing.T, c Config) { t.Helper(); require.False(t, of(c)) }
}

// modelName is the row of a name that must not look like a flag.
func modelName() extremes { return extremes{zero: anyText, huge: anyText, none: anyText} }

// TestExtremes sets every setting to values that mean none, everything or never. What is accepted does what the
// setting's documentation says; all else is refused with one sentence. Values beyond the largest one are refused, so
// nothing overflows.
func TestExtremes(t *testing.T) {
	t.Parallel()
	rows, defaults := table(), load(t)
	names := slices.Sorted(maps.Keys(rows))
	var settings []string
	for _, leaf := range leaves(defaults) {
		settings = append(settings, strings.TrimPrefix(leaf.name, Prefix))
	}
	slices.Sort(settings)
	require.Equal(t, settings, names, "every setting has a row in table")
	for _, leaf := range leaves(defaults) {
		name := strings.TrimPrefix(leaf.name, Prefix)
		zero, negative, huge, beyond := "0", "-1", "1000000000", "1000000001"
		switch leaf.value.Interface().(type) {
		case time.Duration, DurationList:
			zero, negative, huge, beyond = "0s", "-1s", "87600h", "87600h1s"
		case Limit:
			zero, negative, huge, beyond = "0/1h", "-1/1h", "1000000000/87600h", "1/87601h"
		case string:
			beyond = "" // a text has no largest value
		}
		row := rows[name]
		for _, c := range []struct {
			value string
			does  effect
		}{{zero, row.zero}, {negative, row.negative}, {huge, row.huge}, {"none", row.none}, {beyond, nil}} {
			if c.value == "" || name == "GATE_APPROVERS" && c.value == beyond {
				continue
			}
			given := leaf.name + "=" + c.value
			t.Run(given, func(t *testing.T) {
				t.Parallel()
				cfg, err := Load([]string{home, workersUser, given})
				if c.does == nil {
					require.ErrorContains(t, err, leaf.name)
					return
				}
				require.NoError(t, err)
				c.does(t, cfg)
			})
		}
	}
}
