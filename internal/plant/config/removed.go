package config

const (
	policyDecides = "say what the agents of a tier may do in the policy (CLAUDEOPS_POLICY_FILE)."
	cliReports    = "the CLI reports the context windows of models."
	timeAndMoney  = "a session is limited by its time and its budget (..._TIMEOUT, ..._BUDGET_USD)."
	gateOffers    = "the person at the gate decides whether a session goes on (continue_session) or begins anew (fix)."
	ofTheTier     = "a role has the tools of its tier (CLAUDEOPS_TIER1_TOOLS for reviewers, that of " +
		"CLAUDEOPS_AUTHOR_TIER for authors)."
)

// removed maps the names of settings that earlier releases had, without their prefix, to a sentence about what has
// taken their place.
var removed = map[string]string{
	"TIER1_ALLOWED_TOOLS": policyDecides, "TIER2_ALLOWED_TOOLS": policyDecides, "TIER3_ALLOWED_TOOLS": policyDecides,
	"TIER1_DISALLOWED_TOOLS": policyDecides, "TIER2_DISALLOWED_TOOLS": policyDecides,
	"TIER3_DISALLOWED_TOOLS": policyDecides,

	"TIER1_CONTEXT_WINDOW": cliReports, "TIER2_CONTEXT_WINDOW": cliReports, "TIER3_CONTEXT_WINDOW": cliReports,
	"AUTHOR_CONTEXT_WINDOW": cliReports, "TALK_CONTEXT_WINDOW": cliReports,

	"TIER1_MAX_TURNS": timeAndMoney, "TIER2_MAX_TURNS": timeAndMoney, "TIER3_MAX_TURNS": timeAndMoney,
	"REVIEWER_MAX_TURNS": timeAndMoney, "AUTHOR_MAX_TURNS": timeAndMoney,

	"TIER1_ABORT_ON_TIMEOUT": gateOffers, "TIER2_ABORT_ON_TIMEOUT": gateOffers, "TIER3_ABORT_ON_TIMEOUT": gateOffers,
	"REVIEWER_ABORT_ON_TIMEOUT": gateOffers, "AUTHOR_ABORT_ON_TIMEOUT": gateOffers,

	"REVIEWER_TOOLS": ofTheTier, "AUTHOR_TOOLS": ofTheTier,
}
