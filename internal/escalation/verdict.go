package escalation

// VerdictStatus is a tier's conclusion in one word.
type VerdictStatus string

// The conclusions.
const (
	VerdictHealthy    VerdictStatus = "healthy"     // nothing is wrong
	VerdictResolved   VerdictStatus = "resolved"    // something was wrong and is repaired
	VerdictEscalate   VerdictStatus = "escalate"    // something is wrong that a higher tier should repair
	VerdictNeedsHuman VerdictStatus = "needs_human" // something is wrong that no tier should repair alone
	VerdictFailed     VerdictStatus = "failed"      // the tier could not do its work
)

// Verdict is what a tier's agent concludes, as structured output. VerdictSchema is its JSON schema.
type Verdict struct {
	Status VerdictStatus `json:"status"`
	// Summary says in a few sentences what was found and done.
	Summary string `json:"summary"`
	// Services are the services that are affected.
	Services []string `json:"services_affected,omitempty"`
	// Checks are the health checks that were made.
	Checks []CheckResult `json:"check_results,omitempty"`
	// RecommendedTier is the tier that the agent asks for with VerdictEscalate; 0 leaves
	// it to the supervisor, which decides in any case.
	RecommendedTier Tier `json:"recommended_tier,omitempty"`
	// Findings is what the investigation found.
	Findings string `json:"investigation_findings,omitempty"`
	// Remediation is what was tried and what came of it.
	Remediation string `json:"remediation_attempted,omitempty"`
	// Actions are the changes that were made.
	Actions []Action `json:"actions,omitempty"`
	// Issues are the independent problems that were found, if there are several.
	Issues []Issue `json:"issues,omitempty"`
}

// Issue is one of several independent problems, each of which can be repaired by itself.
type Issue struct {
	Summary string `json:"summary"`
	// Services are the services that this problem affects.
	Services []string `json:"services"`
	Severity Severity `json:"severity"`
	// RecommendedTier is the tier that the agent asks for; 0 leaves it open.
	RecommendedTier Tier `json:"recommended_tier,omitempty"`
}

// MaxIssues is how many issues one verdict may name.
const MaxIssues = 20

// CheckResult is one health check of one service.
type CheckResult struct {
	Service        string      `json:"service"`
	CheckType      string      `json:"check_type"` // such as http, container, disk
	Status         CheckStatus `json:"status"`
	Error          string      `json:"error,omitempty"`
	ResponseTimeMS float64     `json:"response_time_ms,omitempty"`
}

// CheckStatus is the outcome of a health check.
type CheckStatus string

// The outcomes of a check.
const (
	CheckHealthy  CheckStatus = "healthy"
	CheckDegraded CheckStatus = "degraded"
	CheckDown     CheckStatus = "down"
)

// Action is one change that a tier made.
type Action struct {
	Kind      ActionKind `json:"kind"`
	Service   string     `json:"service"`
	Detail    string     `json:"detail,omitempty"`
	Succeeded bool       `json:"succeeded"`
}

// ActionKind classifies actions by the cooldown that they count against.
type ActionKind string

// The kinds of action.
const (
	ActionRestart      ActionKind = "restart"
	ActionRedeployment ActionKind = "redeployment"
	ActionOther        ActionKind = "other"
)
