package store

import (
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// ServiceAction is an entry of the ledger, with the session that it belongs to.
type ServiceAction struct {
	escalation.LedgerEntry

	// Session is the number of the session.
	Session int64
	Tier    escalation.Tier
	Model   string
}

func serviceActionFields(a *ServiceAction) []field {
	return []field{
		{"service", &a.Service},
		{"kind", &a.Kind},
		{"at", millis{&a.At}},
		{"ledger.chain_id", &a.ChainID},
		{"ledger.session_id", &a.SessionID},
		{"call_id", &a.Call},
		{"succeeded", &a.Succeeded},
		{"sessions.id", &a.Session},
		{"tier", &a.Tier},
		{"model", &a.Model},
	}
}

var (
	selectActions = "SELECT " + columns(serviceActionFields(new(ServiceAction))) +
		" FROM ledger JOIN sessions ON sessions.session_id = ledger.session_id"
	actionsSinceQuery = selectActions + " WHERE at > $1 ORDER BY at DESC, ledger.id DESC"
	// latestActionsQuery reads the last entry of each service and kind.
	latestActionsQuery = selectActions + ` WHERE at > $1 AND NOT EXISTS (
    SELECT 1 FROM ledger AS later WHERE later.service_key = ledger.service_key AND later.at >= ledger.at AND later.kind = ledger.kind
        AND (later.at > ledger.at OR later.id > ledger.id)
) ORDER BY at DESC, ledger.id DESC`
	actionsOfQuery     = selectActions + " WHERE service_key = $1 ORDER BY at DESC, ledger.id DESC LIMIT $2"
	sessionActionQuery = selectActions + " WHERE ledger.session_id = $1 ORDER BY at, ledger.id LIMIT " + mostSessions
	namedServicesQuery = "SELECT DISTINCT services FROM sessions WHERE started_at >= $1"
)

// ActionsSince returns the restarts and redeployments of all services after a time, the latest first.
func (s *Store) ActionsSince(ctx context.Context, since time.Time) ([]ServiceAction, error) {
	return s.actions(ctx, actionsSinceQuery, since.UnixMilli())
}

// LatestActions returns the latest restart and the latest redeployment of each service after a time, the latest first.
func (s *Store) LatestActions(ctx context.Context, since time.Time) ([]ServiceAction, error) {
	return s.actions(ctx, latestActionsQuery, since.UnixMilli())
}

// ActionsOf returns the restarts and redeployments of a service, the latest first, at most limit.
func (s *Store) ActionsOf(ctx context.Context, service string, limit int) ([]ServiceAction, error) {
	return s.actions(ctx, actionsOfQuery, escalation.ServiceKey(service), limit)
}

// SessionActions returns the restarts and redeployments of a session, oldest first, at most 1,000.
func (s *Store) SessionActions(ctx context.Context, sessionID string) ([]ServiceAction, error) {
	return s.actions(ctx, sessionActionQuery, sessionID)
}

func (s *Store) actions(ctx context.Context, query string, args ...any) ([]ServiceAction, error) {
	actions, err := collect(ctx, s.db, serviceActionFields, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read what was done to services: %w", err)
	}
	return actions, nil
}

// NamedServices returns the services that verdicts name, of the sessions that started since a time. Each is there once,
// in the order of its first occurrence.
func (s *Store) NamedServices(ctx context.Context, since time.Time) ([]string, error) {
	lists, err := collect(ctx, s.db, func(list *[]string) []field {
		return []field{{
			"services",
			jsonText[[]string]{list},
		}}
	},
		namedServicesQuery, since.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("read which services verdicts name: %w", err)
	}
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	return escalation.UniqueServices(all), nil
}
