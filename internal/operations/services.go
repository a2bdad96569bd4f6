package operations

import (
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Services lists and shows services: those of the services file, and those that the records name. The records answer.
type Services struct{ *backend }

// Service is a service in a list.
type Service struct {
	Name string `json:"name"`
	// Listed reports whether the services file has the service. If not, only the records name it.
	Listed bool `json:"listed"`
	// Criticality, Owner and DependsOn are those of the services file. NeededBy lists the services that depend on this one.
	Criticality escalation.Criticality `json:"criticality,omitempty"`
	Owner       string                 `json:"owner,omitempty"`
	DependsOn   []string               `json:"depends_on"`
	NeededBy    []string               `json:"needed_by"`
	// Restarts and Redeployments say how much of the limits is used, and when the next repair is free. The limits are those of
	// this program's settings. Workers may have others.
	Restarts      escalation.Use `json:"restarts"`
	Redeployments escalation.Use `json:"redeployments"`
	// HeldBy is the chain that repairs the service now, or holds all services; nil if none does.
	HeldBy *ServiceHolder `json:"held_by,omitempty"`
	// OpenIncidents counts the open incidents of the service. Severity is that of the most severe one; empty if there is none.
	OpenIncidents int                 `json:"open_incidents"`
	Severity      escalation.Severity `json:"severity,omitempty"`
	// LastAction is the latest restart or redeployment; nil if the records have none.
	LastAction *ServiceAction `json:"last_action,omitempty"`
}

// ServiceHolder is a chain that has locked a service, because it repairs it.
type ServiceHolder struct {
	// Service is the locked service; empty if the chain has locked all services, because it repairs without naming one.
	Service string `json:"service,omitempty"`
	ChainID string `json:"chain_id"`
	// Namespace is the chain's Temporal namespace.
	Namespace string    `json:"namespace,omitempty"`
	Since     time.Time `json:"since"`
}

// ServiceAction is a restart or a redeployment of a service.
type ServiceAction struct {
	Service string                `json:"service"`
	Kind    escalation.ActionKind `json:"kind"`
	At      time.Time             `json:"at"`
	ChainID string                `json:"chain_id"`
	// Session is the number of the session that did it.
	Session   int64           `json:"session,omitempty"`
	SessionID string          `json:"session_id"`
	Tier      escalation.Tier `json:"tier"`
	Model     string          `json:"model"`
	// Call is the tool call that was charged; empty if only a verdict reports the action, or if it is presumed.
	Call string `json:"call,omitempty"`
	// Succeeded reports whether the session's verdict says that the action succeeded; false before there is a verdict.
	Succeeded bool `json:"succeeded"`
}

// ServiceDetail is a service, with what was done to it.
type ServiceDetail struct {
	Service

	Aliases []string `json:"aliases"`
	// Look and LookFile tell how to look at the service. Runbook and RunbookFile tell how to repair it, or where that is
	// written. The files are paths on the workers' hosts.
	Look        string `json:"look,omitempty"`
	LookFile    string `json:"look_file,omitempty"`
	Runbook     string `json:"runbook,omitempty"`
	RunbookFile string `json:"runbook_file,omitempty"`
	// Actions lists the latest actions, latest first, at most 100. More reports whether there are others.
	Actions []ServiceAction `json:"actions"`
	More    bool            `json:"more,omitempty"`
	// Incidents lists the open incidents, and those that were resolved in the last 30 days, the most urgent first.
	Incidents []Incident `json:"incidents"`
}

// ServiceList is a list of services.
type ServiceList struct {
	// Services lists those of the services file in its order, then the others by name.
	Services []Service `json:"services"`
	// HeldBy is the chain that holds all services; nil if none does.
	HeldBy *ServiceHolder `json:"held_by,omitempty"`
}
