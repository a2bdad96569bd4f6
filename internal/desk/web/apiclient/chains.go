package apiclient

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/workflows"
)

// Chains does through the API what operations.Chains does.
type Chains struct{ client *Client }

// maxList is the largest page of the API.
const maxList = 1_000

// List returns a page of the chains that the filter selects.
func (c Chains) List(ctx context.Context, f operations.ChainFilter) (page operations.ChainPage, err error) {
	if err := f.Check(); err != nil {
		return page, err
	}
	query := url.Values{"limit": {strconv.Itoa(min(f.Limit, maxList))}}
	for name, value := range map[string]string{
		"outcome": f.Outcome, "service": f.Service, "trigger": f.Trigger, "incident": f.Incident, "after": f.After,
		"since": timeOf(f.Since), "until": timeOf(f.Until),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, chosen := range map[string]bool{"running": f.Running, "gate": f.Gate, "waits": f.Waits, "retries": f.Retries} {
		if chosen {
			query.Set(name, "true")
		}
	}
	if f.Tier != 0 {
		query.Set("tier", strconv.Itoa(int(f.Tier)))
	}
	if f.MinCostUSD != 0 {
		query.Set("min_cost_usd", strconv.FormatFloat(f.MinCostUSD, 'g', -1, 64))
	}
	err = c.client.get(ctx, place{[]string{"chains"}, query}, &page)
	return page, err
}

func timeOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Get returns a chain.
func (c Chains) Get(ctx context.Context, id string) (now operations.Snapshot, err error) {
	err = c.client.get(ctx, at("chains", id), &now)
	return now, err
}

// Session returns a session, its ancestors and its descendants.
func (c Chains) Session(ctx context.Context, number int64) (found operations.Lineage, err error) {
	err = c.client.get(ctx, at("sessions", strconv.FormatInt(number, 10), "lineage"), &found)
	return found, err
}

// Start starts a chain. Its actor is the person to whom the token belongs.
func (c Chains) Start(ctx context.Context, id string, input workflows.ChainInput) (started operations.Started, err error) {
	if err := input.Validate(); err != nil {
		return started, operations.Invalid(err)
	}
	input.Actor, input.Verified = "", false
	encoded, err := json.Marshal(input)
	if err != nil {
		return started, operations.Invalid(err)
	}
	document := map[string]json.RawMessage{}
	if err := json.Unmarshal(encoded, &document); err != nil {
		return started, operations.Invalid(err)
	}
	if id != "" {
		if document["id"], err = json.Marshal(id); err != nil {
			return started, operations.Invalid(err)
		}
	}
	err = c.client.post(ctx, at("chains"), document, &started)
	return started, err
}

// Escalate asks a running chain for a higher tier. The actor is the person to whom the token belongs.
func (c Chains) Escalate(ctx context.Context, id string, signal workflows.EscalateSignal) error {
	return c.client.post(ctx, at("chains", id, "escalate"), map[string]any{
		"to_tier": signal.ToTier, "reason": signal.Reason, "guidance": signal.Guidance, "force": signal.Force,
	}, nil)
}

// Cancel asks a running chain to end.
func (c Chains) Cancel(ctx context.Context, id string) error {
	return c.client.exchange(ctx, "POST", at("chains", id, "cancel"), nil, nil)
}
