package operations

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows"
)

// ChainFilter selects the chains that match all its fields. An empty field matches every chain.
type ChainFilter struct {
	Running bool
	Outcome string
	Service string
	Trigger string
	// Incident is the ID of an incident.
	Incident string
	Tier     escalation.Tier
	// Since and Until select the chains that were started in this time.
	Since, Until time.Time
	// Gate selects the chains that wait at a gate.
	Gate bool
	// Waits selects the running chains that wait: at a gate, for a cooldown, a budget, a service, a worker or the next
	// attempt. Retries selects the running chains whose session is at its second attempt or a later one, or waits for a
	// worker. Temporal's list knows neither. So the chains that the other fields select are asked, at most maxFiltered
	// running ones of a page, and a page can have fewer chains than Limit although another page follows.
	Waits, Retries bool
	// MinCostUSD selects the chains that cost at least this much, in US dollars.
	MinCostUSD float64
	// Limit is the number of chains on a page. It must be at least 1.
	Limit int
	// After is the key of the page, which the page before has returned; empty for the first page.
	After string
}

// ChainPage is a page of a list of chains.
type ChainPage struct {
	Chains []Row `json:"chains"`
	// Next is the key of the next page; empty if this is the last one.
	Next string `json:"next,omitempty"`
}

// Check returns an error of KindInvalid if no chain can match the filter.
func (f ChainFilter) Check() error {
	if f.Limit < 1 {
		return invalidField("limit", "%d is less than one chain", f.Limit)
	}
	if f.Outcome != "" && !slices.Contains(escalation.Outcomes(), escalation.Outcome(f.Outcome)) {
		return invalidField("outcome", "is %q; it must be %s", line(f.Outcome, 60), plaintext.Or(outcomeNames()))
	}
	return nil
}

func outcomeNames() []string {
	var names []string
	for _, outcome := range escalation.Outcomes() {
		names = append(names, string(outcome))
	}
	return names
}

// query returns the filter in Temporal's list syntax.
func (f ChainFilter) query() string {
	terms := []string{chainTypes()}
	add := func(key, operator, value string) {
		if value != "" {
			terms = append(terms, key+" "+operator+" "+Quote(value))
		}
	}
	add(workflows.OutcomeAttribute.GetName(), "=", f.Outcome)
	add(workflows.ServicesAttribute.GetName(), "=", f.Service)
	add(workflows.TriggerAttribute.GetName(), "=", f.Trigger)
	add(workflows.IncidentAttribute.GetName(), "=", f.Incident)
	add("StartTime", ">=", timeOf(f.Since))
	add("StartTime", "<", timeOf(f.Until))
	if f.Tier != 0 {
		terms = append(terms, fmt.Sprintf("%s = %d", workflows.TierAttribute.GetName(), int(f.Tier)))
	}
	if f.MinCostUSD > 0 {
		terms = append(terms, fmt.Sprintf("%s >= %g", workflows.CostAttribute.GetName(), f.MinCostUSD))
	}
	if f.Gate {
		add(workflows.GateAttribute.GetName(), "=", OpenGate)
	}
	if f.Running || f.Gate || f.asks() {
		add("ExecutionStatus", "=", "Running")
	}
	return strings.Join(terms, " AND ")
}

// maxFiltered limits the chains of a page that are asked whether they wait.
const maxFiltered = 100

// asks reports whether the filter has a field that only the chains themselves can answer.
func (f ChainFilter) asks() bool { return f.Waits || f.Retries }

// matching returns the rows of the chains that wait or retry, as the filter asks, with because of what they wait.
func (f ChainFilter) matching(chains []liveChain, now time.Time) []Row {
	rows := []Row{} // an empty list is [] in JSON
	for i := range chains {
		chain := &chains[i]
		chain.row.Wait = chain.wait(nil, now)
		retries := chain.attempt != nil && (chain.attempt.Number > 1 || chain.attempt.State == AttemptQueued)
		if !chain.ended && (chain.row.Wait != nil || !f.Waits) && (retries || !f.Retries) {
			rows = append(rows, chain.row)
		}
	}
	return rows
}

// timeOf returns a time in Temporal's list syntax; empty for the zero time.
func timeOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// errServiceHidden is the error for a service in a filter if chains do not publish the names of services.
var errServiceHidden = invalidField("service", "finds nothing while CLAUDEOPS_ENCRYPTION_KEYS_FILE is set: "+
	"Temporal does not learn the services of chains; look in the records with: claudeops incidents --service NAME")

// List returns a page of the chains that the filter selects: those that run, the one that started last first; then
// those that have ended, the one that ended last first.
func (c Chains) List(ctx context.Context, f ChainFilter) (ChainPage, error) {
	if err := f.Check(); err != nil {
		return ChainPage{}, err
	}
	connection, cfg, err := c.connect(ctx)
	if err != nil {
		return ChainPage{}, err
	}
	if f.Service != "" && cfg.Encryption.Keys != nil {
		return ChainPage{}, errServiceHidden
	}
	f.Service = cfg.Services.Catalog.Canonical(f.Service)
	token, err := pageToken(f.After)
	if err != nil {
		return ChainPage{}, err
	}
	limit := f.Limit
	if f.asks() {
		limit = min(limit, maxFiltered)
	}
	rows, next, err := listPage(ctx, connection, f.query(), limit, token)
	c.addRecords(ctx, rows)
	if err == nil && f.asks() {
		rows = f.matching(c.askRows(ctx, connection, rows), c.Clock())
	}
	return ChainPage{Chains: rows, Next: pageKey(next)}, err
}

// pageKey returns the key of a page, whose token is Temporal's; empty if there is no such page. The key has a checksum,
// because Temporal's client would repeat a request with a damaged token for 10 seconds.
func pageKey(token []byte) string {
	if len(token) == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(token)),
		token...))
}

// pageToken returns the token in a key; nil for an empty key.
func pageToken(key string) ([]byte, error) {
	if key == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || len(data) < crc32.Size || binary.BigEndian.Uint32(data) != crc32.ChecksumIEEE(data[crc32.Size:]) {
		return nil, Invalid(errors.New("the key of the page is not one that a page before has returned"))
	}
	return data[crc32.Size:], nil
}

// Row is one chain in a list.
type Row struct {
	ID       string   `json:"id"`
	RunID    string   `json:"run_id"`
	Status   string   `json:"status"`
	Outcome  string   `json:"outcome,omitempty"`
	Gate     string   `json:"gate,omitempty"` // open while the chain waits for a person, closed afterwards
	Tier     int64    `json:"tier,omitempty"`
	Trigger  string   `json:"trigger,omitempty"`
	Services []string `json:"services,omitempty"`
	// Plan is the path of the plan that the chain works on; empty if it works on none, or if no client of this program
	// started it.
	Plan string `json:"plan,omitempty"`
	// Cost is the cost of the chain. Temporal does not know whether it is an estimate: the records of this host do.
	escalation.Cost

	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Reason says why a chain with incidents ended as it did; empty if this host does not have the records.
	Reason string `json:"reason,omitempty"`
	// Wait says because of what the chain waits; nil if it does not, and in lists without the filter waits or retries.
	Wait *WaitingChain `json:"wait,omitempty"`
}

// addRecords marks the rows whose costs are estimates, and says why chains ended that found something, if this host has
// the records.
func (b *backend) addRecords(ctx context.Context, rows []Row) {
	records, _, err := b.openRecords(ctx)
	if err != nil {
		return
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	estimated, err := records.EstimatedChains(ctx, ids)
	if err != nil {
		return
	}
	reasons, err := records.EndReasons(ctx, ids)
	if err != nil {
		return
	}
	for i := range rows {
		rows[i].CostEstimated = estimated[rows[i].ID]
		if !rows[i].EndedAt.IsZero() {
			rows[i].Reason = b.mask.Text(reasons[rows[i].ID])
		}
	}
}

// Quote returns value as a string literal of Temporal's list filters.
func Quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// chainTypes returns Temporal's list filter for chains, among them those that work on a plan.
func chainTypes() string { return typesIn(workflows.ChainWorkflows()) }

// typesIn returns Temporal's list filter for workflow types.
func typesIn(types []string) string {
	quoted := make([]string, len(types))
	for i, name := range types {
		quoted[i] = Quote(name)
	}
	return "WorkflowType IN (" + strings.Join(quoted, ", ") + ")"
}

// RecentQuery returns Temporal's list filter for the chains and conversations that run, or have ended at the time since
// or later.
func RecentQuery(since time.Time) string {
	types := typesIn(append(workflows.ChainWorkflows(), workflows.ConversationWorkflow))
	return fmt.Sprintf("%s AND (ExecutionStatus = 'Running' OR CloseTime >= %s)", types, Quote(timeOf(since)))
}

// RunningQuery returns a list filter for the running chains and cycles that also match filter. If filter is empty, it
// matches all of them.
func RunningQuery(filter string) string {
	query := typesIn(append(workflows.ChainWorkflows(), workflows.CycleWorkflow)) + " AND ExecutionStatus = 'Running'"
	if filter != "" {
		query += " AND (" + filter + ")"
	}
	return query
}

// List returns the chains that match query, which is a list filter of Temporal. It returns no more chains than limit.
func List(ctx context.Context, c Connection, query string, limit int) ([]Row, error) {
	rows := []Row{} // an empty list is [] in JSON
	var next []byte
	for {
		page, token, err := listPage(ctx, c, query, limit-len(rows), next)
		if err != nil {
			return nil, err
		}
		rows, next = append(rows, page...), token
		if len(rows) == limit || len(next) == 0 {
			return rows, nil
		}
	}
}

// maxPage is the largest page that Temporal returns.
const maxPage = 1_000

// listPage returns a page of the chains that match query, and the token of the next page; nil if this is the last one.
func listPage(
	ctx context.Context, c Connection, query string, limit int, token []byte,
) (rows []Row, next []byte, err error) {
	listed, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: c.Namespace, Query: query, PageSize: int32(min(limit, maxPage)), NextPageToken: token, //nolint:gosec // at most 1000
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list chains: %w", err)
	}
	rows = []Row{} // an empty list is [] in JSON
	for _, execution := range listed.GetExecutions() {
		rows = append(rows, rowOf(execution, c.Converter))
	}
	return rows, listed.GetNextPageToken(), nil
}

// rowOf returns the row of a chain. The argument memos decodes memos; search attributes are never encrypted.
func rowOf(execution *workflowpb.WorkflowExecutionInfo, memos converter.DataConverter) Row {
	row := Row{
		ID:        execution.GetExecution().GetWorkflowId(),
		RunID:     execution.GetExecution().GetRunId(),
		Status:    statusName(execution.GetStatus()),
		StartedAt: execution.GetStartTime().AsTime(),
	}
	if closed := execution.GetCloseTime(); closed != nil {
		row.EndedAt = closed.AsTime()
	}
	fields := execution.GetSearchAttributes().GetIndexedFields()
	for name, target := range map[string]any{
		workflows.OutcomeAttribute.GetName():  &row.Outcome,
		workflows.GateAttribute.GetName():     &row.Gate,
		workflows.TierAttribute.GetName():     &row.Tier,
		workflows.TriggerAttribute.GetName():  &row.Trigger,
		workflows.ServicesAttribute.GetName(): &row.Services,
		workflows.CostAttribute.GetName():     &row.CostUSD,
	} {
		if payload, ok := fields[name]; ok {
			// If the attribute has an unexpected type, target stays empty.
			_ = converter.GetDefaultDataConverter().FromPayload(payload, target)
		}
	}
	if payload, ok := execution.GetMemo().GetFields()[planMemo]; ok {
		_ = memos.FromPayload(payload, &row.Plan) // without the key for it, Plan stays empty
	}
	return row
}

func statusName(status enumspb.WorkflowExecutionStatus) string {
	return strings.ToLower(status.String())
}

// withoutGate is Temporal's list filter for chains that do not wait at a gate. A chain that has never been at one has
// no such attribute.
var withoutGate = fmt.Sprintf("(%[1]s IS NULL OR %[1]s != %[2]s)", workflows.GateAttribute.GetName(), Quote(OpenGate))

// OpenGate is the value of workflows.GateAttribute while a chain waits for a person.
const OpenGate = "open"

// State describes the state of the chain in one word or a few.
func (r Row) State() string {
	if r.Status == "running" && r.Gate == OpenGate { // a chain that was terminated at its gate still has the attribute
		return "waits for a person"
	}
	if r.Wait != nil {
		return "waits (" + string(r.Wait.Kind) + ")"
	}
	return r.Status
}
