package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

const chainsTag = "chains"

// maxStartBody is above the longest prompt.
const maxStartBody = 256 << 10

var (
	startChain = route[startRequest, operations.Started]{
		role: access.Operate, pattern: "POST /chains", id: "startChain", summary: "Start a chain", tag: chainsTag,
		status: http.StatusCreated, maxBody: maxStartBody,
	}
	listChains = route[chainQuery, operations.ChainPage]{
		role: access.View, pattern: "GET /chains", id: "listChains", summary: "List chains", tag: chainsTag,
	}
	getChain = route[ChainPath, operations.Snapshot]{
		role: access.View, pattern: "GET /chains/{chain_id}", id: "getChain", tag: chainsTag,
		summary: "Get a chain, with the decisions on its agents' calls",
	}
	escalateChain = route[escalateRequest, asked]{
		role: access.Operate, pattern: "POST /chains/{chain_id}/escalate", id: "escalateChain", tag: chainsTag,
		summary: "Ask a running chain for a higher tier", status: http.StatusAccepted,
	}
	cancelChain = route[ChainPath, asked]{
		role: access.Operate, pattern: "POST /chains/{chain_id}/cancel", id: "cancelChain", tag: chainsTag,
		summary: "Ask a running chain to end", status: http.StatusAccepted,
	}
)

func (a *API) registerChains(r routes) {
	chains := a.operations.Chains
	addAnswer(r, startChain, a.startChain)
	add(r, listChains, func(ctx context.Context, in *chainQuery) (operations.ChainPage, error) {
		return chains.List(ctx, in.filter())
	})
	add(r, getChain, func(ctx context.Context, in *ChainPath) (operations.Snapshot, error) {
		return chains.Get(ctx, string(in.ChainID))
	})
	add(r, escalateChain, func(ctx context.Context, in *escalateRequest) (asked, error) {
		signal := workflows.EscalateSignal{
			ToTier: in.Body.ToTier, Reason: in.Body.Reason, Guidance: in.Body.Guidance,
			Force: in.Body.Force,
		}
		signal.Actor, signal.Verified = personOf(ctx), true
		return asked{string(in.ChainID), signal.ToTier}, chains.Escalate(ctx, string(in.ChainID), signal)
	})
	add(r, cancelChain, func(ctx context.Context, in *ChainPath) (asked, error) {
		return asked{ChainID: string(in.ChainID)}, chains.Cancel(ctx, string(in.ChainID))
	})
}

// asked is the answer to a request that a chain gets. What becomes of it is among the chain's events.
type asked struct {
	ChainID string          `json:"chain_id"`
	ToTier  escalation.Tier `json:"to_tier,omitempty"`
}

// StartInput is the input of a new chain. Each field is optional. The fields mean the same as those of
// workflows.ChainInput.
type StartInput struct {
	ID         string                     `json:"id,omitempty" doc:"The ID of the chain; by default one with the time in it."`
	Trigger    escalation.Trigger         `json:"trigger,omitempty" doc:"What started the chain, for lists; manual by default."`
	StartTier  *escalation.Tier           `json:"start_tier,omitempty" doc:"The tier to start with, 1 to 3."`
	MaxTier    *escalation.Tier           `json:"max_tier,omitempty" doc:"The highest tier that may run, at most the workers' own."`
	Prompt     string                     `json:"prompt,omitempty" doc:"What to look at or to do, in your words."`
	Services   []string                   `json:"services,omitempty" doc:"The services to limit the chain to."`
	DryRun     bool                       `json:"dry_run,omitempty" doc:"Look and report only."`
	ResumeFrom *ResumeFrom                `json:"resume_from,omitempty" doc:"A conversation to start from."`
	Models     map[escalation.Tier]string `json:"models,omitempty" doc:"Other models, by tier."`
	Repository string                     `json:"repository,omitempty" doc:"One of the workers' repositories to work in."`
	BudgetUSD  float64                    `json:"budget_usd,omitempty" doc:"Lowers the budget of the chain, in US dollars."`
	Force      bool                       `json:"force,omitempty" doc:"Skip the cooldowns for the first tier."`
	Incidents  []string                   `json:"incidents,omitempty" doc:"The IDs of incidents to work on."`
}

// ResumeFrom names a conversation.
type ResumeFrom struct {
	SessionID string `json:"session_id"`
}

// chainInput returns the input for the workflow, by the workflow's own rules.
func (s StartInput) chainInput(actor string) (workflows.ChainInput, error) {
	said := s
	said.ID, said.Trigger = "", cmp.Or(s.Trigger, escalation.TriggerManual)
	var input workflows.ChainInput
	err := convert(said, &input)
	input.Actor, input.Verified = actor, true
	return input, err
}

// convert copies what from has into the fields with the same names in JSON. A field that into lacks is an error.
func convert(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return operations.Invalid(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return operations.Invalid(decoder.Decode(into))
}

// startRequest is a request to start a chain.
type startRequest struct {
	Key  text `header:"Idempotency-Key" maxLength:"255" doc:"Names this wish: however often it is sent, it starts one chain."`
	Body StartInput
}

// errTwoNames is the error for a start with an ID and a key.
var errTwoNames = operations.Invalid(errors.New(
	"id and the header Idempotency-Key exclude each other: with a key, the chain's ID is derived from it"))

func (a *API) startChain(ctx context.Context, in *startRequest) (reply[operations.Started], error) {
	input, err := in.Body.chainInput(personOf(ctx))
	if err == nil && in.Key != "" && in.Body.ID != "" {
		err = errTwoNames
	}
	if err == nil {
		err = operations.Invalid(input.Validate()) // before the attempt is counted
	}
	if err == nil {
		err = access.MayStart(ctx)
	}
	if err != nil {
		return reply[operations.Started]{}, err
	}
	if in.Key == "" {
		started, err := a.operations.Chains.Start(ctx, in.Body.ID, input)
		return reply[operations.Started]{Body: started}, err
	}
	started, fresh, err := a.operations.Chains.StartOnce(ctx,
		operations.StartKey{Person: personOf(ctx), Key: string(in.Key)}, input)
	if !fresh {
		return reply[operations.Started]{http.StatusOK, started}, err
	}
	return reply[operations.Started]{Body: started}, err
}

// chainQuery selects chains.
type chainQuery struct {
	Page

	Running    bool      `query:"running" doc:"Only chains that have not ended."`
	Outcome    string    `query:"outcome" doc:"Only chains that ended so, such as needs_human."`
	Service    text      `query:"service" doc:"Only chains about this service."`
	Trigger    text      `query:"trigger" doc:"Only chains with this trigger."`
	Incident   text      `query:"incident" doc:"Only chains that have met this incident."`
	Tier       int       `query:"tier" doc:"Only chains that are, or ended, at this tier."`
	Since      time.Time `query:"since" doc:"Only chains that were started at this time or later."`
	Until      time.Time `query:"until" doc:"Only chains that were started before this time."`
	Gate       bool      `query:"gate" doc:"Only chains that wait at a gate."`
	Waits      bool      `query:"waits" doc:"Only running chains that wait."`
	Retries    bool      `query:"retries" doc:"Only running chains whose session was tried before."`
	MinCostUSD float64   `query:"min_cost_usd" doc:"Only chains that cost at least this much, in US dollars."`
}

func (q chainQuery) filter() operations.ChainFilter {
	return operations.ChainFilter{
		Running: q.Running, Outcome: q.Outcome, Service: string(q.Service), Trigger: string(q.Trigger),
		Incident: string(q.Incident), Tier: escalation.Tier(q.Tier), Since: q.Since, Until: q.Until, Gate: q.Gate,
		Waits: q.Waits, Retries: q.Retries, MinCostUSD: q.MinCostUSD, Limit: q.Limit, After: q.After,
	}
}

// queryOf returns the query for a filter.
func queryOf(f operations.ChainFilter) chainQuery {
	return chainQuery{
		Page: Page{Limit: min(f.Limit, maxList), After: f.After}, Running: f.Running, Outcome: f.Outcome,
		Service: text(f.Service), Trigger: text(f.Trigger), Incident: text(f.Incident), Tier: int(f.Tier),
		Since: f.Since, Until: f.Until, Gate: f.Gate, Waits: f.Waits, Retries: f.Retries, MinCostUSD: f.MinCostUSD,
	}
}

// escalateRequest is a request for a higher tier.
type escalateRequest struct {
	ChainPath

	Body escalateRequestBody
}

type escalateRequestBody struct {
	ToTier   escalation.Tier `json:"to_tier" doc:"The tier to run, 2 or 3."`
	Reason   string          `json:"reason,omitempty" doc:"Why, for the record."`
	Guidance string          `json:"guidance,omitempty" doc:"What the tier is told."`
	Force    bool            `json:"force,omitempty" doc:"Pass the cooldowns; the record says so."`
}

// Chains does through the API what operations.Chains does.
type Chains struct{ client *Client }

// List returns a page of the chains that the filter selects.
func (c Chains) List(ctx context.Context, f operations.ChainFilter) (operations.ChainPage, error) {
	if err := f.Check(); err != nil {
		return operations.ChainPage{}, err
	}
	return listChains.call(ctx, c.client, queryOf(f))
}

// Get returns a chain.
func (c Chains) Get(ctx context.Context, id string) (operations.Snapshot, error) {
	return getChain.call(ctx, c.client, ChainPath{temporalID(id)})
}

// Session returns a session, its ancestors and its descendants.
func (c Chains) Session(ctx context.Context, number int64) (operations.Lineage, error) {
	return getLineage.call(ctx, c.client, SessionPath{number})
}

// Start starts a chain. Its actor is the person to whom the token belongs.
func (c Chains) Start(
	ctx context.Context, id string, input workflows.ChainInput,
) (started operations.Started, err error) {
	if err := input.Validate(); err != nil {
		return started, operations.Invalid(err)
	}
	input.Actor, input.Verified = "", false
	var body StartInput
	if err := convert(input, &body); err != nil {
		return started, err
	}
	body.ID = id
	return startChain.call(ctx, c.client, startRequest{Body: body})
}

// Escalate asks a running chain for a higher tier. The actor is the person to whom the token belongs.
func (c Chains) Escalate(ctx context.Context, id string, signal workflows.EscalateSignal) error {
	body := escalateRequestBody{signal.ToTier, signal.Reason, signal.Guidance, signal.Force}
	_, err := escalateChain.call(ctx, c.client, escalateRequest{ChainPath{temporalID(id)}, body})
	return err
}

// Cancel asks a running chain to end.
func (c Chains) Cancel(ctx context.Context, id string) error {
	_, err := cancelChain.call(ctx, c.client, ChainPath{temporalID(id)})
	return err
}
