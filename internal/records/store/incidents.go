package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// incidentRow is an incident, with columns that only the store needs.
type incidentRow struct {
	escalation.Incident
	row int64
	// resolvedSession is the conversation whose verdict resolved the incident; empty if a person closed the incident.
	resolvedSession string
}

// incidentChainRow is the work of a chain on an incident, with the row number of the incident.
type incidentChainRow struct {
	escalation.IncidentChain
	incident int64
}

// ofChainRun is the condition on the rows of one chain, and runArgs returns its arguments.
const ofChainRun = "chain_id = $1 AND first_run_id = $2"

func runArgs(run escalation.ChainRun) []any { return []any{run.ChainID, run.FirstRunID} }

// runIn returns the run of a chain that an incident lists, and runOf the one of a session.
func runIn(chain escalation.IncidentChain) escalation.ChainRun {
	return escalation.ChainRun{ChainID: chain.ChainID, FirstRunID: chain.FirstRunID}
}

func runOf(session escalation.Session) escalation.ChainRun {
	return escalation.ChainRun{ChainID: session.ChainID, FirstRunID: session.FirstRunID}
}

// working is the condition on the rows of chains that still work on the incident. A chain that has ended its work with
// this incident, and works on others, records no progress with it any more.
const working = "(status <> 'ended' OR outcome <> 'resolved')"

const incidentPrefix = "incident-"

// incidentRowOf returns the row number in an incident's ID. If id is not an incident's ID, it returns 0. No row has the
// number 0.
func incidentRowOf(id string) int64 {
	number, err := strconv.ParseInt(strings.TrimPrefix(id, incidentPrefix), 10, 64)
	if err != nil || !strings.HasPrefix(id, incidentPrefix) {
		return 0
	}
	return number
}

var (
	selectIncidents = "SELECT " + columns(incidentFields(new(incidentRow))) + " FROM incidents"
	incidentQuery   = selectIncidents + " WHERE id = $1"
	openQuery       = selectIncidents + " WHERE resolved_at IS NULL ORDER BY id"
	resolvedQuery   = "SELECT " + columns(resolvedFields(new(incidentRow))) + " FROM incidents" +
		" WHERE resolved_at > $1 AND resolved_at <= $2 AND (resolved_at < $2 OR id < $3) ORDER BY resolved_at DESC, " +
		"id DESC"
	healedQuery = selectIncidents + " WHERE resolved_session = $1 ORDER BY id"

	selectIncidentChains = "SELECT " + columns(incidentChainFields(new(incidentChainRow))) + " FROM incident_chains"
	incidentsOfQuery     = "SELECT incident_id FROM incident_chains WHERE " + ofChainRun + " ORDER BY incident_id"
	workingQuery         = "SELECT incident_id FROM incident_chains WHERE " + ofChainRun + " AND " + working +
		" ORDER BY incident_id"
	atWorkQuery = selectIncidentChains + " WHERE status IN ($1, $2, $3) ORDER BY chain_id, first_run_id"
)

// IncidentFilter selects incidents.
type IncidentFilter struct {
	// Since selects the incidents that were resolved after this time, in addition to the open incidents. If Since is
	// zero, no resolved incident is selected.
	Since time.Time
	// Services limits the list to incidents of these services. If Services is empty, the list has the incidents of all
	// services.
	Services []string
	// Kind limits the list to incidents of this kind; empty for all kinds.
	Kind string
	// IDs lists the IDs of incidents that are selected whatever their services and their kind are. Such an incident
	// must be open, or resolved after Since.
	IDs []string
	// Limit is the maximum number of resolved incidents: the last resolved ones; 0 means all. Each incident of a
	// list takes several queries.
	Limit int
	// OnlyResolved selects no open incident.
	OnlyResolved bool
	// After is the last resolved incident of the page before: of the resolved ones, only those that were resolved
	// earlier are selected. If it is empty, the list begins with the one that was resolved last.
	After IncidentPlace
}

// IncidentPlace is the place of a resolved incident in a list, the one resolved last first.
type IncidentPlace struct {
	ResolvedAt time.Time
	ID         string
}

// args returns the latest time and the row number at which a list continues.
func (p IncidentPlace) args() (before, row int64) {
	if p.ID == "" {
		return math.MaxInt64, math.MaxInt64
	}
	return p.ResolvedAt.UnixMilli(), incidentRowOf(p.ID)
}

// Incidents returns the incidents that filter selects, in the order in which they were opened.
func (s *Store) Incidents(ctx context.Context, filter IncidentFilter) (incidents []escalation.Incident, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		incidents, err = readIncidents(ctx, tx, filter)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the incidents: %w", err)
	}
	return incidents, nil
}

// KnownIncidents returns the incidents that a chain may meet again: those that are open, and those that were resolved
// at most escalation.IncidentMemory before.
func (s *Store) KnownIncidents(
	ctx context.Context, of escalation.KnownIncidents,
) (incidents []escalation.Incident, err error) {
	defer s.count(OpIncidents, &err)
	return s.Incidents(ctx, IncidentFilter{
		Since: of.At.Add(-escalation.IncidentMemory), Services: of.Services, Kind: of.Kind, IDs: of.IDs,
	})
}

// Incident returns one incident. If id is unknown, the error is ErrNotFound.
func (s *Store) Incident(ctx context.Context, id string) (incident escalation.Incident, err error) {
	err = s.read(ctx, func(tx *sql.Tx) error {
		row, err := oneIncident(ctx, tx, id)
		incident = row.Incident
		incident.Shorten()
		return err
	})
	if err != nil {
		return escalation.Incident{}, fmt.Errorf("read incident %q: %w", id, err)
	}
	return incident, nil
}

// IncidentClosing names the person who closes an incident, and the reason.
type IncidentClosing struct {
	Actor string
	// Verified reports that the person has logged in under this name.
	Verified bool
	// Reason may be empty.
	Reason string
	At     time.Time
}

// CloseIncident resolves an incident on behalf of a person, and returns the incident with all chains at work on it. If
// the incident is already resolved, CloseIncident returns the unchanged incident with ErrConflict. If id is unknown,
// the error is ErrNotFound. If closing lacks an actor or a time, the error is ErrInvalid.
func (s *Store) CloseIncident(
	ctx context.Context, id string, closing IncidentClosing,
) (incident escalation.Incident, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		row, err := oneIncident(ctx, tx, id)
		incident = row.Incident
		incident.Shorten()
		switch {
		case err != nil:
			return err
		case closing.Actor == "" || closing.At.IsZero():
			return fmt.Errorf("%w: nobody, or no time, is given", ErrInvalid)
		case !row.ResolvedAt.IsZero():
			return fmt.Errorf("%w: it is resolved already", ErrConflict)
		}
		row.resolve(escalation.IncidentClosed, storable(closing.Actor), "", closing.At)
		row.ResolvedReason, row.ResolvedVerified, row.State = storable(closing.Reason), closing.Verified,
			escalation.IncidentResolved
		listed := incident.Chains
		incident = row.Incident
		incident.Chains = slices.DeleteFunc(slices.Clone(row.Chains), func(chain escalation.IncidentChain) bool {
			same := func(other escalation.IncidentChain) bool { return runIn(other) == runIn(chain) }
			return !chain.AtWork() && !slices.ContainsFunc(listed, same)
		})
		return updateIncident(ctx, tx, row)
	})
	if err != nil {
		return incident, fmt.Errorf("close incident %q: %w", id, err)
	}
	return incident, nil
}

// RecordProgress records the progress of a chain with its incidents. If progress.Only is set, RecordProgress changes
// only the incidents in that list. It adds the chain to the incidents in progress.Owns, and removes the chain from the
// incidents in progress.Leaves.
func (s *Store) RecordProgress(
	ctx context.Context, chain escalation.ChainRun, progress escalation.ChainProgress,
) (err error) {
	defer s.count(OpIncidents, &err)
	progress.Reason = s.hooks.text(progress.Reason)
	ids, err := incidentsOf(ctx, s.db, chain)
	if err == nil && len(ids)+len(progress.Owns) > 0 { // a chain that finds nothing wrong has no incidents
		err = s.write(ctx, func(tx *sql.Tx) error { return recordProgress(ctx, tx, chain, progress) })
	}
	if err != nil {
		return fmt.Errorf("record what chain %q does about its incidents: %w", chain.ChainID, err)
	}
	return nil
}

// EndReasons returns why chains with incidents have ended, by their workflow IDs.
func (s *Store) EndReasons(ctx context.Context, ids []string) (map[string]string, error) {
	reasons, err := s.ofChains(ctx,
		"SELECT chain_id, reason FROM incident_chains WHERE status = 'ended' AND reason <> ''", ids)
	if err != nil {
		return nil, fmt.Errorf("read why chains have ended: %w", err)
	}
	return reasons, nil
}

// ChainAtWork is a chain that takes care of incidents.
type ChainAtWork struct {
	escalation.ChainRun

	// At is the time of the chain's latest recorded progress.
	At time.Time
}

// ChainsAtWork returns the chains that have not ended their work on incidents: they look, repair or wait.
func (s *Store) ChainsAtWork(ctx context.Context) ([]ChainAtWork, error) {
	rows, err := collect(ctx, s.db, incidentChainFields, atWorkQuery,
		string(escalation.ChainLooking), string(escalation.ChainRepairing), string(escalation.ChainWaiting))
	if err != nil {
		return nil, fmt.Errorf("read which chains work on incidents: %w", err)
	}
	var chains []ChainAtWork
	for i := range rows {
		if one := (ChainAtWork{runIn(rows[i].IncidentChain), rows[i].At}); !slices.Contains(chains, one) {
			chains = append(chains, one)
		}
	}
	return chains, nil
}

const abandonQuery = `
UPDATE incident_chains SET status = $1, outcome = $2, rule = '', reason = $3
WHERE chain_id = $4 AND first_run_id = $5 AND at = $6 AND status <> $1`

// AbandonIncidents records the end of a chain that could not record its end. If the chain has recorded progress after
// the caller read its row, AbandonIncidents changes nothing and returns false.
func (s *Store) AbandonIncidents(ctx context.Context, chain ChainAtWork, reason string) (abandoned bool, err error) {
	var rows int64
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, abandonQuery, string(escalation.ChainEnded),
			string(escalation.OutcomeFailed), storable(reason),
			chain.ChainID, chain.FirstRunID, chain.At.UnixMilli())
		if err == nil {
			rows, err = result.RowsAffected()
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("end the work of chain %q on incidents: %w", chain.ChainID, err)
	}
	return rows > 0, nil
}

func readIncidents(ctx context.Context, q querier, filter IncidentFilter) ([]escalation.Incident, error) {
	rows, err := selectedIncidents(ctx, q, filter)
	if err != nil {
		return nil, err
	}
	if err := completeAll(ctx, q, rows); err != nil {
		return nil, err
	}
	incidents := make([]escalation.Incident, len(rows))
	for i := range rows {
		rows[i].Shorten()
		incidents[i] = rows[i].Incident
	}
	return incidents, nil
}

// selects reports whether the filter selects the incident, whether it is resolved or not.
func (f IncidentFilter) selects(incident incidentRow) bool {
	if slices.Contains(f.IDs, incident.ID) {
		return true
	}
	ofServices := len(f.Services) == 0 || escalation.SharesService(incident.Services, f.Services)
	return ofServices && (f.Kind == "" || f.Kind == incident.Kind)
}

// selectedIncidents returns the incidents that filter selects, by number, without their chains and costs.
func selectedIncidents(ctx context.Context, q querier, filter IncidentFilter) ([]incidentRow, error) {
	var rows []incidentRow
	var err error
	if !filter.OnlyResolved {
		rows, err = plainIncidents(ctx, q, openQuery)
		rows = slices.DeleteFunc(rows, func(row incidentRow) bool { return !filter.selects(row) })
	}
	if err == nil && !filter.Since.IsZero() {
		var resolved []incidentRow
		resolved, err = latestResolved(ctx, q, filter, filter.selects)
		rows = append(rows, resolved...)
	}
	slices.SortFunc(rows, func(a, b incidentRow) int { return cmp.Compare(a.row, b.row) })
	return rows, err
}

// resolvedIncidents returns the selected incidents among those that were resolved after since, without their chains and
// costs. The function selects may use the ID, the services and the kind of an incident. Most callers select few of
// many, so resolvedIncidents first reads only these.
func resolvedIncidents(
	ctx context.Context, q querier, since time.Time, selects func(row incidentRow) bool,
) ([]incidentRow, error) {
	return latestResolved(ctx, q, IncidentFilter{Since: since}, selects)
}

// latestResolved returns those of resolvedIncidents that were resolved last, after the place of the filter and at most
// as many as its limit, in the order in which they were resolved.
func latestResolved(
	ctx context.Context, q querier, filter IncidentFilter, selects func(row incidentRow) bool,
) (found []incidentRow, err error) {
	before, last := filter.After.args()
	err = each(ctx, q, func(rows *sql.Rows) (bool, error) {
		row, err := scan(rows, resolvedFields)
		if row.ID = incidentPrefix + strconv.FormatInt(row.row, 10); err == nil && selects(row) {
			found = append(found, row)
		}
		return filter.Limit == 0 || len(found) < filter.Limit, err
	}, resolvedQuery, filter.Since.UnixMilli(), before, last)
	if err != nil {
		return nil, err
	}
	slices.Reverse(found)
	return incidentsNumbered(ctx, q, found)
}

// resolvedFields lists the columns by which resolved incidents are selected and sorted.
func resolvedFields(i *incidentRow) []field {
	return append(identityFields(i), field{"resolved_at", millis{&i.ResolvedAt}})
}

// identityFields lists the columns of the table incidents with the ID, the services and the kind.
func identityFields(i *incidentRow) []field { return incidentFields(i)[:3] }

func oneIncident(ctx context.Context, q querier, id string) (incidentRow, error) {
	rows, err := completeIncidents(ctx, q, incidentQuery, incidentRowOf(id))
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return incidentRow{}, err
	}
	return rows[0], nil
}

func incidentsByRow(ctx context.Context, q querier, ids []int64) ([]escalation.Incident, error) {
	var incidents []escalation.Incident
	for _, id := range ids {
		rows, err := completeIncidents(ctx, q, incidentQuery, id)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			rows[i].Shorten()
			incidents = append(incidents, rows[i].Incident)
		}
	}
	return incidents, nil
}

func completeIncidents(ctx context.Context, q querier, query string, args ...any) ([]incidentRow, error) {
	rows, err := plainIncidents(ctx, q, query, args...)
	if err == nil {
		err = completeAll(ctx, q, rows)
	}
	return rows, err
}

// plainIncidents returns incidents without their chains and costs.
func plainIncidents(ctx context.Context, q querier, query string, args ...any) ([]incidentRow, error) {
	return plainRows(ctx, q, incidentFields, query, args...)
}

// plainRows returns the given fields of incidents, and their IDs.
func plainRows(
	ctx context.Context, q querier, fields func(*incidentRow) []field, query string, args ...any,
) ([]incidentRow, error) {
	rows, err := collect(ctx, q, fields, query, args...)
	for i := range rows {
		rows[i].ID = incidentPrefix + strconv.FormatInt(rows[i].row, 10)
	}
	return rows, err
}

// incidentsOf returns the row numbers of the incidents that a chain has met.
func incidentsOf(ctx context.Context, q querier, chain escalation.ChainRun) (ids []int64, err error) {
	return collectIDs(ctx, q, incidentsOfQuery, chain)
}

func collectIDs(ctx context.Context, q querier, query string, chain escalation.ChainRun) ([]int64, error) {
	return collect(ctx, q, func(id *int64) []field { return []field{{"incident_id", id}} }, query, runArgs(chain)...)
}
