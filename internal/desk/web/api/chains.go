package api

import (
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

func (a *API) registerChains(r routes) {
	chains := a.operations.Chains
	add(r, route{
		role: access.Operate, pattern: "POST /chains", id: "startChain", summary: "Start a chain", tag: chainsTag,
		status: http.StatusCreated, maxBody: maxStartBody,
	}, a.startChain)
	add(r, route{role: access.View, pattern: "GET /chains", id: "listChains", summary: "List chains", tag: chainsTag}, a.listChains)
	add(r, route{
		role: access.View, pattern: "GET /chains/{chain_id}", id: "getChain", tag: chainsTag,
		summary: "Get a chain, with the decisions on its agents' calls",
	}, func(ctx context.Context, in *ChainPath) (*result[operations.Snapshot], error) {
		return resultOf(chains.Get(ctx, string(in.ChainID)))
	})
	add(r, route{
		role: access.Operate, pattern: "POST /chains/{chain_id}/escalate", id: "escalateChain", tag: chainsTag,
		summary: "Ask a running chain for a higher tier", status: http.StatusAccepted,
	}, a.escalateChain)
	add(r, route{
		role: access.Operate, pattern: "POST /chains/{chain_id}/cancel", id: "cancelChain", tag: chainsTag,
		summary: "Ask a running chain to end", status: http.StatusAccepted,
	}, func(ctx context.Context, in *ChainPath) (*result[asked], error) {
		return resultOf(asked{ChainID: string(in.ChainID)}, chains.Cancel(ctx, string(in.ChainID)))
	})
}

// asked is the answer to a request that a chain gets. What becomes of it is among the chain's events.
type asked struct {
	ChainID string          `json:"chain_id"`
	ToTier  escalation.Tier `json:"to_tier,omitempty"`
}

// StartInput is the input of a new chain. Each field is optional. The fields mean the same as those of workflows.ChainInput.
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
	data, err := json.Marshal(said)
	if err == nil {
		err = json.Unmarshal(data, &input)
	}
	input.Actor, input.Verified = actor, true
	return input, operations.Invalid(err)
}

// startRequest is a request to start a chain.
type startRequest struct {
	Key  text `header:"Idempotency-Key" maxLength:"255" doc:"Names this wish: however often it is sent, it starts one chain."`
	Body StartInput
}

// startAnswer is the answer to a request to start a chain.
type startAnswer struct {
	Status int
	Body   operations.Started
}

// errTwoNames is the error for a start with an ID and a key.
var errTwoNames = operations.Invalid(errors.New(
	"id and the header Idempotency-Key exclude each other: with a key, the chain's ID is derived from it"))

func (a *API) startChain(ctx context.Context, in *startRequest) (*startAnswer, error) {
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
		return nil, err
	}
	if in.Key == "" {
		started, err := a.operations.Chains.Start(ctx, in.Body.ID, input)
		return &startAnswer{http.StatusCreated, started}, err
	}
	started, fresh, err := a.operations.Chains.StartOnce(ctx, operations.StartKey{Person: personOf(ctx), Key: string(in.Key)}, input)
	if !fresh {
		return &startAnswer{http.StatusOK, started}, err
	}
	return &startAnswer{http.StatusCreated, started}, err
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

func (a *API) listChains(ctx context.Context, in *chainQuery) (*result[operations.ChainPage], error) {
	return resultOf(a.operations.Chains.List(ctx, operations.ChainFilter{
		Running: in.Running, Outcome: in.Outcome, Service: string(in.Service), Trigger: string(in.Trigger), Incident: string(in.Incident),
		Tier: escalation.Tier(in.Tier), Since: in.Since, Until: in.Until, Gate: in.Gate, Waits: in.Waits, Retries: in.Retries,
		MinCostUSD: in.MinCostUSD, Limit: in.Limit, After: in.After,
	}))
}

// escalateRequest is a request for a higher tier.
type escalateRequest struct {
	ChainPath

	Body struct {
		ToTier   escalation.Tier `json:"to_tier" doc:"The tier to run, 2 or 3."`
		Reason   string          `json:"reason,omitempty" doc:"Why, for the record."`
		Guidance string          `json:"guidance,omitempty" doc:"What the tier is told."`
		Force    bool            `json:"force,omitempty" doc:"Pass the cooldowns; the record says so."`
	}
}

func (a *API) escalateChain(ctx context.Context, in *escalateRequest) (*result[asked], error) {
	signal := workflows.EscalateSignal{ToTier: in.Body.ToTier, Reason: in.Body.Reason, Guidance: in.Body.Guidance, Force: in.Body.Force}
	signal.Actor, signal.Verified = personOf(ctx), true
	return resultOf(asked{string(in.ChainID), signal.ToTier}, a.operations.Chains.Escalate(ctx, string(in.ChainID), signal))
}
