package telemetry

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/claudeops/claudeops/internal/escalation"
)

// namespace begins the names of this program's own metrics. The names of the Temporal SDK's metrics begin with
// "temporal_".
const namespace = "claudeops"

// Metrics holds the metrics of one worker. The number of values of each label is limited. No label contains the name of
// a chain, a session or a service.
type Metrics struct {
	registry *prometheus.Registry

	chains          *prometheus.CounterVec
	sessions        *prometheus.CounterVec
	sessionDuration *prometheus.HistogramVec
	cost            *prometheus.CounterVec
	tokens          *prometheus.CounterVec
	resumeFailures  *prometheus.CounterVec
	refusals        *prometheus.CounterVec
	agents          prometheus.Gauge
	agentsAllowed   prometheus.Gauge
	dayBudget       prometheus.Gauge
	archiveErrors   *prometheus.CounterVec
	storeErrors     *prometheus.CounterVec
	openGates       prometheus.Gauge
	oldestGate      prometheus.Gauge
	openSessions    prometheus.Gauge
	oldestSession   prometheus.Gauge
	incidents       *prometheus.GaugeVec
	observed        prometheus.Gauge

	models bounded
}

// NewMetrics returns metrics in a new registry. One metric shows version, the version of this program.
func NewMetrics(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), models: bounded{limit: maxModels}}
	m.defineSessions()
	m.defineWork()
	m.defineRecords()
	build := gauge("build_info", "Always 1. The label has the version of the worker.", "version")
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.prime()
	return m
}

// defineSessions defines the metrics of chains and sessions that have ended.
func (m *Metrics) defineSessions() {
	m.chains = counter("chains_total", "Chains that have ended, by outcome.", "outcome")
	m.sessions = counter("sessions_total", "Sessions that have ended.", "tier", "model", "continuity", "status")
	m.sessionDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "session_duration_seconds",
		Help:    "Time from the start to the end of a session, with all its attempts.",
		Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200},
	}, []string{"tier"})
	m.cost = counter("cost_dollars_total", "Cost of the sessions that have ended, in US dollars.", "tier", "model")
	m.tokens = counter("tokens_total", "Tokens of the sessions that have ended, by kind.", "tier", "model", "kind")
	m.resumeFailures = counter("resume_failures_total",
		"Conversations that the next session could not resume, by reason.", "reason")
	m.registry.MustRegister(m.chains, m.sessions, m.sessionDuration, m.cost, m.tokens, m.resumeFailures)
}

// defineWork defines the metrics of the worker's current work.
func (m *Metrics) defineWork() {
	m.refusals = counter("guard_refusals_total", "Tool calls that the guard has refused, by tier and rule.", "tier",
		"rule")
	m.agents = gauge("agents_running", "Agents that this worker runs now.").WithLabelValues()
	m.agentsAllowed = gauge("agents_allowed", "Agents that this worker may run at the same time.").WithLabelValues()
	m.dayBudget = gauge("day_budget_dollars",
		"Budget of all chains for one day in US dollars; 0: no cap.").WithLabelValues()
	m.archiveErrors = counter("archive_errors_total", "Failed operations on the archive of conversations.", "operation")
	m.storeErrors = counter("store_errors_total", "Failed operations on the database of records.", "operation")
	m.registry.MustRegister(m.refusals, m.agents, m.agentsAllowed, m.dayBudget, m.archiveErrors, m.storeErrors)
}

// defineRecords defines the metrics that a worker reads from Temporal and from the records once a minute. All workers
// report the same values, so do not add up the values of several workers.
func (m *Metrics) defineRecords() {
	m.openGates = gauge("open_gates", "Chains of the namespace that wait for a person.").WithLabelValues()
	m.oldestGate = gauge("oldest_gate_age_seconds",
		"Age of the oldest open gate of the namespace; 0: none is open.").WithLabelValues()
	m.openSessions = gauge("open_sessions", "Sessions in the records that have not ended.").WithLabelValues()
	m.oldestSession = gauge("oldest_session_age_seconds",
		"Age of the oldest session in the records that has not ended; 0: there is none.").WithLabelValues()
	m.incidents = gauge("incidents", "Incidents in the records that are not resolved, by state.", "state")
	m.observed = gauge("records_observed_timestamp_seconds",
		"Time at which the gates, sessions and incidents were last read, in seconds since 1970.").WithLabelValues()
	m.registry.MustRegister(m.openGates, m.oldestGate, m.openSessions, m.oldestSession, m.incidents, m.observed)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// prime sets the counters of all known label values to 0. Otherwise, the first event would create a series that begins
// with 1, and Prometheus would see no increase.
func (m *Metrics) prime() {
	for _, outcome := range escalation.Outcomes() {
		m.chains.WithLabelValues(string(outcome))
	}
	for _, reason := range resumeFailureReasons {
		m.resumeFailures.WithLabelValues(string(reason))
	}
	for _, tier := range escalation.Tiers() {
		for _, rule := range refusalRules {
			m.refusals.WithLabelValues(tierLabel(tier), rule)
		}
		m.sessionDuration.WithLabelValues(tierLabel(tier))
	}
	m.archiveErrors.WithLabelValues(archiveSave)
	m.archiveErrors.WithLabelValues(archiveRestore)
	for _, operation := range storeOperations {
		m.storeErrors.WithLabelValues(operation)
	}
	for _, state := range incidentStates {
		m.incidents.WithLabelValues(string(state))
	}
}

// Limits holds configured values. SetLimits exports the limits among them as metrics, so that alerts can compare other
// metrics with them.
type Limits struct {
	// Agents is the maximum number of agents that the worker runs at the same time.
	Agents int
	// DayBudgetUSD is the budget of all chains for one day in US dollars; 0 for no cap.
	DayBudgetUSD float64
	// Models has the model of each tier.
	Models map[escalation.Tier]string
}

// SetLimits sets the metrics of the configured limits. It also starts a series with the value 0 for each configured
// model.
func (m *Metrics) SetLimits(limits Limits) {
	if m == nil {
		return
	}
	m.agentsAllowed.Set(float64(limits.Agents))
	m.dayBudget.Set(limits.DayBudgetUSD)
	for tier, model := range limits.Models {
		model = m.models.label(model)
		m.cost.WithLabelValues(tierLabel(tier), model)
		for _, kind := range tokenKinds {
			m.tokens.WithLabelValues(tierLabel(tier), model, kind)
		}
	}
}

const (
	tokensInput         = "input"
	tokensOutput        = "output"
	tokensCacheRead     = "cache_read"
	tokensCacheCreation = "cache_creation"
)

var tokenKinds = []string{tokensInput, tokensOutput, tokensCacheRead, tokensCacheCreation}

// ChainEnded counts a chain that has ended.
func (m *Metrics) ChainEnded(outcome escalation.Outcome) {
	if m == nil {
		return
	}
	if !slices.Contains(escalation.Outcomes(), outcome) {
		outcome = escalation.OutcomeFailed
	}
	m.chains.WithLabelValues(string(outcome)).Inc()
}

// SessionEnded counts a session that was closed in the records, with its cost and its tokens.
func (m *Metrics) SessionEnded(session escalation.Session) {
	if m == nil {
		return
	}
	tier, model := tierLabel(session.Tier), m.models.label(session.Model)
	m.sessions.WithLabelValues(tier, model, string(session.Continuity), string(session.Status)).Inc()
	if !session.StartedAt.IsZero() && session.EndedAt.After(session.StartedAt) {
		m.sessionDuration.WithLabelValues(tier).Observe(session.EndedAt.Sub(session.StartedAt).Seconds())
	}
	m.cost.WithLabelValues(tier, model).Add(max(0, session.CostUSD))
	for kind, tokens := range map[string]int{
		tokensInput: session.Tokens.Input, tokensOutput: session.Tokens.Output,
		tokensCacheRead: session.Tokens.CacheRead, tokensCacheCreation: session.Tokens.CacheCreation,
	} {
		m.tokens.WithLabelValues(tier, model, kind).Add(float64(max(0, tokens)))
	}
	if reason, failed := resumeFailure(session); failed {
		m.resumeFailures.WithLabelValues(string(reason)).Inc()
	}
}

// resumeFailureReasons lists the reasons for which a conversation cannot be resumed.
var resumeFailureReasons = []escalation.ContinuityReason{
	escalation.ReasonResumeFailed, escalation.ReasonTranscriptLost, escalation.ReasonContextPressure,
	escalation.ReasonSessionIDMissing,
}

// resumeFailure returns the reason for which a session could not resume its conversation; false if there was no such
// failure. If the resume failed or the transcript was lost, the status of the session gives the reason. Otherwise, only
// a session that started from a handoff can have such a reason, in ContinuityReason.
func resumeFailure(session escalation.Session) (escalation.ContinuityReason, bool) {
	switch {
	case session.Status == escalation.SessionResumeFailed:
		return escalation.ReasonResumeFailed, true
	case session.Status == escalation.SessionTranscriptLost:
		return escalation.ReasonTranscriptLost, true
	case session.Continuity != escalation.ContinuityHandoff:
		return "", false
	}
	reason := session.ContinuityReason
	return reason, reason == escalation.ReasonContextPressure || reason == escalation.ReasonSessionIDMissing
}

// AgentStarted counts an agent that this worker runs now. Call the returned function when the agent has ended.
func (m *Metrics) AgentStarted() (ended func()) {
	if m == nil {
		return func() {}
	}
	m.agents.Inc()
	return m.agents.Dec
}

// CallRefused counts a tool call that the guard has refused.
func (m *Metrics) CallRefused(tier escalation.Tier, rule string) {
	if m == nil {
		return
	}
	m.refusals.WithLabelValues(tierLabel(tier), ruleLabel(rule)).Inc()
}

const (
	ruleNever  = "never"
	rulePolicy = "policy"
)

// refusalRules lists the values of the label "rule". The name of a rule for a single program can contain words of an
// agent. So the label has the value rulePolicy for all these rules. The records contain their full names.
var refusalRules = []string{
	ruleNever, "cooldown", "default", "doors", "hosts", "private", "protected", "repository", "secrets", "unasked",
	"unclear", rulePolicy,
}

// ruleLabel returns the value of the label "rule" for a rule of the guard.
func ruleLabel(rule string) string {
	switch {
	case strings.HasPrefix(rule, "never: "):
		return ruleNever
	case slices.Contains(refusalRules, rule):
		return rule
	default:
		return rulePolicy
	}
}

const (
	archiveSave    = "save"
	archiveRestore = "restore"
)

// ArchiveFailed counts a conversation that could not be saved to the archive or, if save is false, could not be
// restored from it.
func (m *Metrics) ArchiveFailed(save bool) {
	if m == nil {
		return
	}
	operation := archiveRestore
	if save {
		operation = archiveSave
	}
	m.archiveErrors.WithLabelValues(operation).Inc()
}

// storeOperations lists the values of store.Operation, so that their counters begin at 0.
var storeOperations = []string{
	"open_session", "close_session", "review", "release_services", "find_session", "append_events", "incidents",
	"memories", "append_decisions", "charge", "sweep", "observe", "conversations",
}

// StoreFailed counts an operation on the database of records if err is not nil.
func (m *Metrics) StoreFailed(operation string, err error) {
	if m != nil && err != nil {
		m.storeErrors.WithLabelValues(operation).Inc()
	}
}

// incidentStates lists the states of incidents that are not resolved.
var incidentStates = []escalation.IncidentState{
	escalation.IncidentOpen, escalation.IncidentRepairing, escalation.IncidentWaiting,
}

// Observation holds the numbers of open gates, sessions and incidents, which come from Temporal and from the records.
type Observation struct {
	At time.Time
	// Gates counts the open gates. OldestGate is the opening time of the oldest open gate; zero if no gate is open.
	Gates      int
	OldestGate time.Time
	// Sessions counts the open sessions. OldestSession is the start time of the oldest open session; zero if no session
	// is open.
	Sessions      int
	OldestSession time.Time
	// Incidents counts the incidents that are not resolved.
	Incidents map[escalation.IncidentState]int
}

// Observe sets the metrics to an observation.
func (m *Metrics) Observe(o Observation) {
	if m == nil {
		return
	}
	m.openGates.Set(float64(o.Gates))
	m.oldestGate.Set(age(o.At, o.OldestGate))
	m.openSessions.Set(float64(o.Sessions))
	m.oldestSession.Set(age(o.At, o.OldestSession))
	for _, state := range incidentStates {
		m.incidents.WithLabelValues(string(state)).Set(float64(o.Incidents[state]))
	}
	m.observed.Set(float64(o.At.UnixMilli()) / 1000)
}

// age returns the number of seconds that have passed at the time now since the time since; 0 if since is zero.
func age(now, since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since).Seconds())
}

func tierLabel(tier escalation.Tier) string { return strconv.Itoa(int(tier)) }

// maxModels limits the number of different models in labels, because a person can name any model for a chain.
const maxModels = 20

// bounded limits the number of values of a label.
type bounded struct {
	limit int

	mutex sync.Mutex
	known map[string]bool
}

// label returns the text for value in a label. It returns "other" if value is new and the label already has its maximum
// number of values. If not, it returns value.
func (b *bounded) label(value string) string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.known[value] {
		return value
	}
	if len(b.known) >= b.limit {
		return "other"
	}
	if b.known == nil {
		b.known = map[string]bool{}
	}
	b.known[value] = true
	return value
}
