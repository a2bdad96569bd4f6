package escalation

// VerdictStatus is a tier's conclusion.
type VerdictStatus string

// The conclusions.
const (
	VerdictHealthy  VerdictStatus = "healthy"  // nothing is wrong
	VerdictResolved VerdictStatus = "resolved" // something was wrong, and the session has repaired it
	VerdictEscalate VerdictStatus = "escalate" // something is wrong, and a higher tier should repair it
	// VerdictNeedsHuman: something is wrong, and no tier should repair it without an operator
	VerdictNeedsHuman VerdictStatus = "needs_human"
	VerdictFailed     VerdictStatus = "failed" // the tier could not do its work
)

// Verdict is the structured output of an agent. VerdictSchema is its JSON schema.
type Verdict struct {
	Status VerdictStatus `json:"status"`
	// Summary describes in a few sentences the agent's findings and actions.
	Summary string `json:"summary"`
	// Services lists the affected services.
	Services []string `json:"services_affected,omitempty"`
	// Kind classifies the problem if the verdict lists no issues; empty if the agent names no kind.
	Kind string `json:"kind,omitempty"`
	// Checks lists the health checks that were made.
	Checks []CheckResult `json:"check_results,omitempty"`
	// RecommendedTier is the tier that the agent requests with VerdictEscalate; 0 if the agent names no tier. The
	// supervisor decides, and can choose another tier.
	RecommendedTier Tier `json:"recommended_tier,omitempty"`
	// Findings describes what the investigation found.
	Findings string `json:"investigation_findings,omitempty"`
	// Remediation describes the attempted repairs and their results.
	Remediation string `json:"remediation_attempted,omitempty"`
	// Actions lists the changes that were made.
	Actions []Action `json:"actions,omitempty"`
	// Issues lists independent problems; empty if the agent found fewer than two.
	Issues []Issue `json:"issues,omitempty"`
	// Known holds the agent's findings about the open incidents in the prompt.
	Known []KnownIncident `json:"known_incidents,omitempty"`
	// Memories holds what the agent proposes to remember. Package memory decides what becomes of it.
	Memories []MemoryProposal `json:"memories,omitempty"`
}

// MemoryProposal is something learned about a service that still holds in a month.
type MemoryProposal struct {
	Kind MemoryKind `json:"kind"`
	// Service is the service that it is about. Only people propose memories of no service, which concern all services.
	Service string `json:"service"`
	// Subject says in a few words what it is about. Memories with the same subject and different texts contradict each
	// other.
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// MemoryKind classifies a memory.
type MemoryKind string

// The kinds of memory.
const (
	MemoryCorrection  MemoryKind = "correction"  // something that was believed, or done, is wrong
	MemoryDiscovery   MemoryKind = "discovery"   // a fact about the infrastructure
	MemoryRemediation MemoryKind = "remediation" // a repair that has helped
)

// Limits on a memory.
const (
	MaxMemories      = 3   // in one verdict
	MaxMemorySubject = 80  // characters
	MaxMemoryText    = 500 // characters
)

// Issue is one of several problems that can be repaired independently.
type Issue struct {
	Summary string `json:"summary"`
	// Services lists the services that this problem affects.
	Services []string `json:"services"`
	Severity Severity `json:"severity"`
	// Kind classifies the problem, such as down, disk_full or certificate; empty if the agent names no kind.
	Kind string `json:"kind,omitempty"`
	// RecommendedTier is the tier that the agent requests for this problem; 0 if the agent names no tier.
	RecommendedTier Tier `json:"recommended_tier,omitempty"`
}

// MaxIssues limits the issues of one verdict.
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

// ActionKind classifies actions by the cooldown that limits them.
type ActionKind string

// The kinds of action.
const (
	ActionRestart      ActionKind = "restart"
	ActionRedeployment ActionKind = "redeployment"
	ActionOther        ActionKind = "other"
)
