package escalation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
)

// limitedPolicy returns a policy with every limit set.
func limitedPolicy() escalation.Policy {
	return escalation.Policy{
		Tiers:          []escalation.TierPolicy{{BudgetUSD: 0.5}, {BudgetUSD: 2.5}, {BudgetUSD: 10}},
		ChainBudgetUSD: 12, DayBudgetUSD: 40, Cooldowns: usual(), EscalationLimit: limit("3/1h"),
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	type (
		policy  = escalation.Policy
		request = escalation.AdmissionRequest
		facts   = escalation.AdmissionFacts
	)
	restarted := []escalation.LedgerEntry{entry("nginx", escalation.ActionRestart, 1), entry("nginx", escalation.ActionRestart, 2)}
	used := func(more ...escalation.LedgerEntry) []escalation.ServiceState {
		return usual().States(append(more, restarted...), []string{"nginx", "caddy", "postgres"}, noon)
	}
	redeployed := used(entry("nginx", escalation.ActionRedeployment, 1))
	busy := []escalation.BusyService{{Service: "nginx", ChainID: "other"}}
	about := func(services ...string) request { return request{Tier: 2, Services: services} }
	author := func(services ...string) request {
		return request{Tier: 2, Purpose: escalation.PurposeAuthor, Services: services}
	}
	granted := func(budget float64) escalation.Admission {
		return escalation.Admission{Granted: true, BudgetUSD: budget, Rule: escalation.RuleAdmitted}
	}
	forced := granted(2.5)
	forced.Forced = true
	refused := func(rule escalation.Rule, until time.Time) escalation.Admission {
		return escalation.Admission{Rule: rule, WaitUntil: until}
	}
	never := time.Time{}
	soon := noon.Add
	for name, test := range map[string]struct {
		change  func(*policy)
		request request
		facts   facts
		want    escalation.Admission
	}{
		"nothing objects":                  {nil, about(), facts{}, granted(2.5)},
		"no budget at all":                 {func(p *policy) { p.Tiers[1].BudgetUSD, p.ChainBudgetUSD, p.DayBudgetUSD = 0, 0, 0 }, about(), facts{DaySpentUSD: 99}, granted(0)},
		"no budget of the tier":            {func(p *policy) { p.Tiers[1].BudgetUSD = 0 }, about(), facts{}, granted(12)},
		"the rest of the chain":            {nil, request{Tier: 2, ChainSpentUSD: 11}, facts{}, granted(1)},
		"the rest of the day":              {nil, about(), facts{DaySpentUSD: 39.5}, granted(0.5)},
		"the lesser rest":                  {nil, request{Tier: 2, ChainSpentUSD: 11}, facts{DaySpentUSD: 39.75}, granted(0.25)},
		"the chain's budget is spent":      {nil, request{Tier: 1, ChainSpentUSD: 12}, facts{}, refused(escalation.RuleChainBudget, never)},
		"the chain's budget is overspent":  {nil, request{Tier: 2, ChainSpentUSD: 12.3}, facts{DaySpentUSD: 90}, refused(escalation.RuleChainBudget, never)},
		"the day's budget is spent":        {nil, request{Tier: 1}, facts{DaySpentUSD: 40}, refused(escalation.RuleDayBudget, never)},
		"dust is left of the day's budget": {nil, request{Tier: 1}, facts{DaySpentUSD: 39.9999}, refused(escalation.RuleDayBudget, never)},
		"running sessions reserve the day": {nil, request{Tier: 1}, facts{DaySpentUSD: 10, DayReservedUSD: 30}, refused(escalation.RuleDayBudget, soon(time.Minute))},
		"the day is spent all the same":    {nil, request{Tier: 1}, facts{DaySpentUSD: 40, DayReservedUSD: 30}, refused(escalation.RuleDayBudget, never)},
		"it has waited for reservations":   {nil, request{Tier: 1, WaitingSince: soon(-6 * time.Hour)}, facts{DaySpentUSD: 10, DayReservedUSD: 30}, refused(escalation.RuleDayBudget, never)},
		"no force passes a budget":         {nil, request{Tier: 2, Force: true}, facts{DaySpentUSD: 40}, refused(escalation.RuleDayBudget, never)},

		"cooldown":                            {nil, about("nginx"), facts{Services: used()}, refused(escalation.RuleCooldown, soon(2*time.Hour))},
		"cooldown before exclusion":           {nil, about("nginx"), facts{Services: used(), Busy: busy}, refused(escalation.RuleCooldown, soon(2*time.Hour))},
		"an author repairs no service":        {nil, author("nginx"), facts{Services: used(), Busy: busy, Escalations: 9}, granted(2.5)},
		"the chain's budget limits an author": {nil, request{Tier: 2, Purpose: escalation.PurposeAuthor, ChainSpentUSD: 11}, facts{}, granted(1)},
		"the day's budget limits an author":   {nil, author("nginx"), facts{DaySpentUSD: 40}, refused(escalation.RuleDayBudget, never)},
		"a correction passes the cooldown":    {nil, request{Tier: 2, Services: []string{"nginx"}, Correction: true}, facts{Services: used()}, granted(2.5)},
		"and no other chain":                  {nil, request{Tier: 2, Services: []string{"nginx"}, Correction: true}, facts{Services: used(), Busy: busy}, refused(escalation.RuleServiceBusy, soon(time.Minute))},
		"one service may be repaired":         {nil, about("nginx", "caddy"), facts{Services: used()}, granted(2.5)},
		"no service is known":                 {nil, about(), facts{Services: used()}, granted(2.5)},
		"a redeployment is left to tier 3":    {nil, request{Tier: 3, Services: []string{"nginx"}}, facts{Services: used()}, granted(10)},
		"no redeployment is left to tier 3":   {nil, request{Tier: 3, Services: []string{"nginx"}}, facts{Services: redeployed}, refused(escalation.RuleCooldown, soon(2*time.Hour))},
		"tier 1 looks":                        {nil, request{Tier: 1, Services: []string{"nginx"}}, facts{Services: used(), Busy: busy, Escalations: 9}, granted(0.5)},
		"what only writes repairs nothing":    {nil, request{Tier: 2, Services: []string{"nginx"}, Purpose: escalation.PurposeHandoff}, facts{Services: used(), Busy: busy, Escalations: 9}, granted(2.5)},
		"a dry run repairs nothing":           {func(p *policy) { p.DryRun = true }, about("nginx"), facts{Services: used(), Busy: busy, Escalations: 9}, granted(2.5)},
		"force":                               {nil, request{Tier: 2, Services: []string{"nginx"}, Force: true}, facts{Services: used()}, forced},
		"force that was not needed":           {nil, request{Tier: 2, Services: []string{"caddy"}, Force: true}, facts{Services: used()}, granted(2.5)},
		"the cooldown outlasts the patience":  {func(p *policy) { p.Cooldowns.MaxWait = escalation.Duration(time.Hour) }, about("nginx"), facts{Services: used()}, refused(escalation.RuleCooldown, never)},
		"it has waited long enough":           {nil, request{Tier: 2, Services: []string{"nginx"}, WaitingSince: soon(-5 * time.Hour)}, facts{Services: used()}, refused(escalation.RuleCooldown, never)},
		"it may just wait as long":            {nil, request{Tier: 2, Services: []string{"nginx"}, WaitingSince: soon(-4 * time.Hour)}, facts{Services: used()}, refused(escalation.RuleCooldown, soon(2*time.Hour))},
		"the last cents of the day":           {func(p *policy) { p.ChainBudgetUSD, p.DayBudgetUSD = 0, 10 }, request{Tier: 2}, facts{DaySpentUSD: 9.76}, refused(escalation.RuleDayBudget, never)},
		"the last cents of the chain":         {func(p *policy) { p.ChainBudgetUSD, p.DayBudgetUSD = 10, 0 }, request{Tier: 2}, facts{ChainSpentUSD: 9.5}, granted(0.5)},
		"a cooldown that never ends":          {nil, about("gone"), facts{Services: forbidden("gone")}, refused(escalation.RuleCooldown, never)},
		"the service that is free the sooner": {nil, about("nginx", "gone"), facts{Services: append(forbidden("gone"), used()...)}, refused(escalation.RuleCooldown, soon(2*time.Hour))},

		"the service in another spelling": {nil, about("Nginx "), facts{Services: used()}, refused(escalation.RuleCooldown, soon(2*time.Hour))},

		"a service of unknown state":         {nil, about("nginx"), facts{Services: used()[:1]}, refused(escalation.RuleCooldown, never)},
		"another chain is at one of them":    {nil, about("nginx", "caddy"), facts{Services: used(), Busy: busy}, refused(escalation.RuleServiceBusy, soon(time.Minute))},
		"no force passes another chain":      {nil, request{Tier: 2, Services: []string{"nginx"}, Force: true}, facts{Services: used(), Busy: busy}, refused(escalation.RuleServiceBusy, soon(time.Minute))},
		"it asks less often":                 {nil, request{Tier: 2, Services: []string{"caddy"}, WaitingSince: soon(-20 * time.Minute)}, facts{Services: used(), Busy: busy}, refused(escalation.RuleServiceBusy, soon(5*time.Minute))},
		"but often enough":                   {nil, request{Tier: 2, Services: []string{"caddy"}, WaitingSince: soon(-5 * time.Hour)}, facts{Services: used(), Busy: busy}, refused(escalation.RuleServiceBusy, soon(15*time.Minute))},
		"and a last time at the very end":    {nil, request{Tier: 2, Services: []string{"caddy"}, WaitingSince: soon(-355 * time.Minute)}, facts{Services: used(), Busy: busy}, refused(escalation.RuleServiceBusy, soon(5*time.Minute))},
		"then no more":                       {nil, request{Tier: 2, Services: []string{"caddy"}, WaitingSince: soon(-6 * time.Hour)}, facts{Services: used(), Busy: busy}, refused(escalation.RuleServiceBusy, never)},
		"no patience for another chain":      {func(p *policy) { p.Cooldowns.MaxWait = 0 }, about("caddy"), facts{Services: used(), Busy: busy}, refused(escalation.RuleServiceBusy, never)},
		"exclusion before chains per window": {nil, about("caddy"), facts{Services: used(), Busy: busy, Escalations: 9}, refused(escalation.RuleServiceBusy, soon(time.Minute))},

		"one more chain may escalate":     {nil, about("caddy"), facts{Services: used(), Escalations: 2}, granted(2.5)},
		"too many chains":                 {nil, about("caddy"), facts{Services: used(), Escalations: 3}, refused(escalation.RuleEscalationLimit, never)},
		"this one counts already":         {nil, about("caddy"), facts{Services: used(), Escalations: 3, Escalated: true}, granted(2.5)},
		"no force passes too many chains": {nil, request{Tier: 2, Services: []string{"nginx"}, Force: true}, facts{Services: used(), Escalations: 3}, refused(escalation.RuleEscalationLimit, never)},
		"no chain may escalate":           {func(p *policy) { p.EscalationLimit = limit("0/1h") }, about("caddy"), facts{Services: used()}, refused(escalation.RuleEscalationLimit, never)},
		"any number of chains":            {func(p *policy) { p.EscalationLimit = limit("none") }, about("caddy"), facts{Services: used(), Escalations: 99}, granted(2.5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := limitedPolicy()
			if test.change != nil {
				test.change(&policy)
			}
			test.request.At = noon
			got := escalation.Admit(policy, test.request, test.facts)
			require.Equal(t, got.Granted, got.Reason == "", "a refusal, and nothing else, is explained")
			require.NotContains(t, got.Reason, "\n")
			got.Reason = ""
			switch test.want.Rule { //nolint:exhaustive // the end of no other limit is known
			case escalation.RuleDayBudget:
				test.want.EndsAt = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
			case escalation.RuleAccountLimit:
				test.want.EndsAt = test.facts.LimitedUntil
			case escalation.RuleServiceBusy:
				test.want.EndsAt = noon // other chains may try soon
			case escalation.RuleCooldown:
				require.True(t, test.want.WaitUntil.IsZero() || got.EndsAt.Equal(test.want.WaitUntil))
				test.want.EndsAt = got.EndsAt
			default:
			}
			require.Equal(t, test.want, got)
		})
	}
}

// forbidden returns the state of a service that must never be repaired.
func forbidden(service string) []escalation.ServiceState {
	never := escalation.Cooldowns{Restarts: limit("0/1h"), Redeployments: limit("0/1h")}
	return never.States(nil, []string{service}, noon)
}

func TestAdmissionReasons(t *testing.T) {
	t.Parallel()
	policy := limitedPolicy()
	request := escalation.AdmissionRequest{Tier: 2, Services: []string{"gone", "lost"}, At: noon}
	for want, facts := range map[string]escalation.AdmissionFacts{
		"tier 2 cannot start: the budget of all chains for this day (UTC) of $40.00 is spent or reserved ($41.20)": {DaySpentUSD: 41.2},
		"tier 2 may not repair gone, lost now: its cooldown is not over":                                           {Services: forbidden("gone")},
		"tier 2 cannot start: 4 chains have escalated within 1 h, and 3 are allowed":                               {Services: free("lost"), Escalations: 4},
		"tier 2 may not repair lost now: chain c-7 is at it": {
			Services: free("lost"), Busy: []escalation.BusyService{{Service: "lost", ChainID: "c-7"}},
		},
	} {
		require.Equal(t, want, escalation.Admit(policy, request, facts).Reason)
	}
}

// TestAdmissionReasonsWithoutServices checks the reasons if the chain names no service, or if the chain that holds it
// up names no service.
func TestAdmissionReasonsWithoutServices(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]struct{ requested, busy string }{
		"tier 2 may not repair now, because it names no service and so may be at any of them: chain c-7 is at web": {"", "web"},
		"tier 2 may not repair web now: chain c-7 names no service and so may be at any of them":                   {"web", ""},
		"tier 2 may not repair now, because it names no service: chain c-7 repairs and names none either":          {"", ""},
	} {
		request := escalation.AdmissionRequest{Tier: 2, At: noon}
		if tt.requested != "" {
			request.Services = []string{tt.requested}
		}
		refusal := escalation.Admit(limitedPolicy(), request, escalation.AdmissionFacts{
			Services: free("web"), Busy: []escalation.BusyService{{Service: tt.busy, ChainID: "c-7"}},
		})
		require.Equal(t, escalation.RuleServiceBusy, refusal.Rule)
		require.Equal(t, noon.Add(time.Minute), refusal.WaitUntil)
		require.Equal(t, want, refusal.Reason)
	}
}

func free(service string) []escalation.ServiceState {
	return usual().States(nil, []string{service}, noon)
}

// TestAdmissionKeepsEveryLimit checks every granted admission against all limits, over random policies and
// facts.
func TestAdmissionKeepsEveryLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		usd := rapid.SampledFrom([]float64{0, 0.1, 0.3, 1, 5, 20})
		policy := limitedPolicy()
		policy.ChainBudgetUSD, policy.DayBudgetUSD = usd.Draw(t, "chain budget"), usd.Draw(t, "day budget")
		policy.DryRun = rapid.Bool().Draw(t, "dry run")
		policy.Cooldowns.MaxWait = escalation.Duration(rapid.IntRange(0, 8).Draw(t, "max wait")) * escalation.Duration(time.Hour)
		request := escalation.AdmissionRequest{
			Tier:          rapid.SampledFrom(escalation.Tiers()).Draw(t, "tier"),
			At:            noon,
			Services:      rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"nginx", "caddy", "postgres"}), 0, 3, rapid.ID).Draw(t, "services"),
			ChainSpentUSD: usd.Draw(t, "chain spent"),
			Force:         rapid.Bool().Draw(t, "force"),
			WaitingSince:  rapid.SampledFrom([]time.Time{{}, noon.Add(-time.Hour), noon.Add(-7 * time.Hour)}).Draw(t, "waiting since"),
		}
		var entries []escalation.LedgerEntry
		for range rapid.IntRange(0, 6).Draw(t, "entries") {
			kind := rapid.SampledFrom([]escalation.ActionKind{escalation.ActionRestart, escalation.ActionRedeployment}).Draw(t, "kind")
			entries = append(entries, entry(rapid.SampledFrom([]string{"nginx", "caddy"}).Draw(t, "of"), kind, rapid.Float64Range(0, 30).Draw(t, "ago")))
		}
		facts := escalation.AdmissionFacts{
			DaySpentUSD: usd.Draw(t, "day spent"), Services: policy.Cooldowns.States(entries, request.Services, noon),
			Escalations: rapid.IntRange(0, 4).Draw(t, "escalations"), Escalated: rapid.Bool().Draw(t, "escalated"),
		}
		if rapid.Bool().Draw(t, "busy") {
			facts.Busy = []escalation.BusyService{{Service: "nginx", ChainID: "other"}}
		}
		admission := escalation.Admit(policy, request, facts)
		requireLawful(t, policy, request, facts, admission)
		require.Equal(t, admission, escalation.Admit(policy.OfSession(request.Tier), request, facts))
	})
}

func requireLawful(t *rapid.T, policy escalation.Policy, request escalation.AdmissionRequest, facts escalation.AdmissionFacts, got escalation.Admission) {
	if !got.Granted {
		require.NotEmpty(t, got.Reason)
		require.NotEqual(t, escalation.RuleAdmitted, got.Rule)
		if !got.WaitUntil.IsZero() {
			require.True(t, got.WaitUntil.After(request.At))
			since := request.WaitingSince
			if since.IsZero() {
				since = request.At
			}
			require.LessOrEqual(t, got.WaitUntil.Sub(since), policy.Cooldowns.MaxWait.Std())
		}
		return
	}
	if policy.ChainBudgetUSD > 0 {
		require.Positive(t, got.BudgetUSD)
		require.LessOrEqual(t, request.ChainSpentUSD+got.BudgetUSD, policy.ChainBudgetUSD+1e-9)
	}
	if policy.DayBudgetUSD > 0 {
		require.Positive(t, got.BudgetUSD)
		require.LessOrEqual(t, facts.DaySpentUSD+got.BudgetUSD, policy.DayBudgetUSD+1e-9)
	}
	require.LessOrEqual(t, got.BudgetUSD, policy.For(request.Tier).BudgetUSD)
	if !request.Repairs(policy) {
		require.False(t, got.Forced)
		return
	}
	require.Empty(t, facts.Busy)
	require.True(t, facts.Escalated || facts.Escalations < policy.EscalationLimit.Max)
	require.Equal(t, got.Forced, len(request.Services) > 0 && !anyOpen(request, facts))
	require.True(t, !got.Forced || request.Force)
}

// anyOpen reports whether the cooldowns leave the requested tier an action on any of the requested services.
func anyOpen(request escalation.AdmissionRequest, facts escalation.AdmissionFacts) bool {
	for _, state := range facts.Services {
		for _, service := range request.Services {
			if service == state.Service && (state.Restarts.Free || request.Tier == escalation.TierFullRepair && state.Redeployments.Free) {
				return true
			}
		}
	}
	return false
}

// TestUncappedSessions opens sessions without a cap beside each other. None reserves the rest of the day, and none
// starts on less than a session can work with.
func TestUncappedSessions(t *testing.T) {
	t.Parallel()
	policy := escalation.Policy{Tiers: make([]escalation.TierPolicy, 3), DayBudgetUSD: 10}
	request := escalation.AdmissionRequest{Tier: 1, Purpose: escalation.PurposeTalk, At: noon}
	facts := escalation.AdmissionFacts{}
	for range 8 {
		admission := escalation.Admit(policy, request, facts)
		require.True(t, admission.Granted)
		require.GreaterOrEqual(t, admission.BudgetUSD, 0.25)
		facts.DayReservedUSD += admission.BudgetUSD
	}
	require.Less(t, facts.DayReservedUSD, 9.5, "something is left for another one")

	for spent, granted := range map[float64]bool{9.74: true, 9.76: false, 9.995: false, 10: false, 11: false} {
		admission := escalation.Admit(policy, request, escalation.AdmissionFacts{DaySpentUSD: spent})
		require.Equal(t, granted, admission.Granted, spent)
		require.True(t, granted || admission.WaitUntil.IsZero())
	}
	policy.DayBudgetUSD, policy.ChainBudgetUSD = 0, 10
	for spent, granted := range map[float64]bool{0: true, 9.74: true, 9.995: false, 11: false} {
		admission := escalation.Admit(policy, request, escalation.AdmissionFacts{ChainSpentUSD: spent})
		require.Equal(t, granted, admission.Granted, spent)
		if granted {
			require.InDelta(t, 10-spent, admission.BudgetUSD, 1e-9, "a chain runs one session at a time")
		}
	}
}

// TestReservationsStayWithinTheDay draws a day: sessions with and without caps start and end in any order, at any cost.
// What is spent and reserved never exceeds the budget by more than a session has overspent its own, and what is refused
// says why.
func TestReservationsStayWithinTheDay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		day := rapid.SampledFrom([]float64{0.001, 0.01, 1, 10, 25, 1e6}).Draw(t, "day's budget")
		caps := rapid.SampledFrom([]float64{0, 0, 0.001, 0.5, 2.5, 10, 1e9})
		facts := escalation.AdmissionFacts{}
		var open []float64
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(open) > 0 && rapid.Bool().Draw(t, "one ends") {
				at := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				facts.DayReservedUSD -= open[at]
				facts.DaySpentUSD += open[at] * rapid.Float64Range(0, 1).Draw(t, "spends")
				open = append(open[:at], open[at+1:]...)
				continue
			}
			policy := escalation.Policy{Tiers: []escalation.TierPolicy{{BudgetUSD: caps.Draw(t, "cap")}, {}, {}}, DayBudgetUSD: day}
			before := day - facts.DaySpentUSD - facts.DayReservedUSD
			admission := escalation.Admit(policy, escalation.AdmissionRequest{Tier: 1, At: noon}, facts)
			if !admission.Granted {
				require.Equal(t, escalation.RuleDayBudget, admission.Rule)
				require.NotEmpty(t, admission.Reason)
				continue
			}
			require.Positive(t, admission.BudgetUSD)
			require.LessOrEqual(t, admission.BudgetUSD, before)
			if own := policy.Tiers[0].BudgetUSD; own > 0 {
				require.LessOrEqual(t, admission.BudgetUSD, own)
			} else {
				require.LessOrEqual(t, admission.BudgetUSD, max(day/4, 0.001)+1e-9, "others start beside it")
			}
			open = append(open, admission.BudgetUSD)
			facts.DayReservedUSD += admission.BudgetUSD
			require.LessOrEqual(t, facts.DaySpentUSD+facts.DayReservedUSD, day*(1+1e-9))
		}
	})
}
