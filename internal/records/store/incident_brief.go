package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
)

// ChainIncidents returns the incidents that a chain works on (own), and those incidents on which other chains still
// work although the session has ended them (healed). One incident can be in both lists. Each incident lists the work of
// other chains only, because the chain knows its own work. A healed incident lists all chains that still work on it,
// because each is told.
func (s *Store) ChainIncidents(
	ctx context.Context, chain escalation.ChainRun, sessionID string,
) (own, healed []escalation.Incident, err error) {
	defer s.count(OpIncidents, &err)
	err = s.read(ctx, func(tx *sql.Tx) error {
		if own, err = ownIncidents(ctx, tx, chain); err != nil {
			return err
		}
		rows, err := completeIncidents(ctx, tx, healedQuery, sessionID)
		for i := range rows {
			incident := withoutChain(rows[i].Incident, chain)
			incident.Chains = slices.DeleteFunc(incident.Chains,
				func(other escalation.IncidentChain) bool { return !other.AtWork() })
			if len(incident.Chains) > 0 {
				healed = append(healed, incident)
			}
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read the incidents of chain %q: %w", chain.ChainID, err)
	}
	return own, healed, nil
}

// ownIncidents returns the incidents that a chain works on, with the work of other chains only.
func ownIncidents(ctx context.Context, q querier, chain escalation.ChainRun) ([]escalation.Incident, error) {
	ids, err := incidentsOf(ctx, q, chain)
	if err != nil {
		return nil, err
	}
	incidents, err := incidentsByRow(ctx, q, ids)
	for i := range incidents {
		incidents[i] = withoutChain(incidents[i], chain)
	}
	return incidents, err
}

// withoutChain returns incident without the work of one chain.
func withoutChain(incident escalation.Incident, chain escalation.ChainRun) escalation.Incident {
	incident.Chains = slices.DeleteFunc(incident.Chains, func(other escalation.IncidentChain) bool {
		return runIn(other) == chain
	})
	return incident
}

// repairsQuery selects sessions of other chains that could have changed services, the latest first. The conditions on
// tier and purpose match escalation.Session.Repairs.
var repairsQuery = selectSessions + ` WHERE started_at > $1 AND (chain_id <> $2 OR first_run_id <> $3)
AND ended_at IS NOT NULL AND tier >= $4 AND purpose IN ($5, $6) AND NOT dry_run ORDER BY started_at DESC`

// pastRepairs returns the latest repairs by other chains that concern a service of request, oldest first. It returns at
// most MaxPastRepairs.
func pastRepairs(ctx context.Context, q querier, request escalation.AdmissionRequest) ([]escalation.PastRepair, error) {
	if request.Tier < escalation.TierSafeRepair || len(request.Services) == 0 {
		return nil, nil
	}
	var repairs []escalation.PastRepair
	err := each(ctx, q, func(row *sql.Rows) (more bool, err error) {
		session, err := scan(row, sessionFields)
		services := session.Scope
		if session.Verdict != nil {
			services = escalation.MergeServices(session.Verdict.Services, services)
		}
		if err == nil && escalation.SharesService(services, request.Services) {
			repairs = append(repairs, escalation.NewPastRepair(session))
		}
		return len(repairs) < escalation.MaxPastRepairs, err
	}, repairsQuery, request.At.Add(-escalation.IncidentMemory).UnixMilli(), request.ChainID, request.FirstRunID,
		int(escalation.TierSafeRepair), string(escalation.PurposeTier), string(escalation.PurposeContinuation))
	slices.Reverse(repairs)
	return repairs, err
}

// readBrief returns the facts about incidents for the agent of the requested session. It omits failed looks, because no
// agent can repair them.
func readBrief(
	ctx context.Context, q querier, request escalation.AdmissionRequest,
) (brief escalation.IncidentBrief, err error) {
	switch request.Purpose {
	case escalation.PurposeTalk, escalation.PurposeReview, escalation.PurposeAuthor: // their prompts name no incidents
		return brief, nil
	case escalation.PurposeTier, escalation.PurposeContinuation, escalation.PurposeRecheck, escalation.PurposeHandoff:
	}
	if request.Tier == escalation.TierObserve {
		brief.Incidents, err = mostImportant(ctx, q, request.Services)
		return brief, err
	}
	brief.Incidents, err = ownIncidents(ctx, q, escalation.ChainRun{
		ChainID:    request.ChainID,
		FirstRunID: request.FirstRunID,
	})
	brief.Incidents = withoutFailedLooks(brief.Incidents)
	if err == nil {
		brief.Repairs, err = pastRepairs(ctx, q, request)
	}
	return brief, err
}

// mostImportant returns the open incidents of services that are most important to an agent; of all services if there
// are none. It reads chains and costs of these incidents only.
func mostImportant(ctx context.Context, q querier, services []string) ([]escalation.Incident, error) {
	rows, err := selectedIncidents(ctx, q, IncidentFilter{Services: services})
	if err != nil {
		return nil, err
	}
	open := make([]escalation.Incident, len(rows))
	for i := range rows {
		open[i] = rows[i].Incident
	}
	var ids []int64
	for _, incident := range escalation.MostImportant(withoutFailedLooks(open)) {
		ids = append(ids, incidentRowOf(incident.ID))
	}
	return incidentsByRow(ctx, q, ids)
}

func withoutFailedLooks(incidents []escalation.Incident) []escalation.Incident {
	return slices.DeleteFunc(incidents, func(incident escalation.Incident) bool { return incident.IsFailedLook() })
}
