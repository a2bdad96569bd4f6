package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// applyFindings opens, updates and resolves incidents according to the verdict of an ended session, or to its failure
// to look. It also records that the session's chain has met these incidents.
func applyFindings(ctx context.Context, tx *sql.Tx, session escalation.Session, at time.Time) error {
	own, err := collectIDs(ctx, tx, workingQuery, runOf(session))
	if err != nil {
		return fmt.Errorf("read the incidents of the chain: %w", err)
	}
	known, err := plainIncidents(ctx, tx, openQuery)
	if mayReturn := returning(session); err == nil && mayReturn != nil {
		var resolved []incidentRow
		resolved, err = resolvedIncidents(ctx, tx, at.Add(-escalation.IncidentMemory), mayReturn)
		known = append(known, resolved...)
	}
	if err != nil {
		return fmt.Errorf("read the incidents: %w", err)
	}
	session.EndedAt = at // a further report has its own time, not the recorded end of the session
	change := incidentChange{tx: tx, session: session, at: at, known: known}
	for _, row := range own {
		change.own = append(change.own, incidentPrefix+strconv.FormatInt(row, 10))
	}
	return change.apply(ctx)
}

// returning returns a function that reports whether the session may have found a resolved incident again. It uses the
// services and the kind of the incident. If the session has found no fault, returning returns nil.
func returning(session escalation.Session) func(incident incidentRow) bool {
	switch {
	case session.LookFailed():
		return func(incident incidentRow) bool { return incident.IsFailedLook() }
	case session.Verdict != nil && session.Verdict.FindsFault():
		affected := session.Verdict.Affected()
		return func(incident incidentRow) bool {
			return len(incident.Services) == 0 || escalation.SharesService(incident.Services, affected)
		}
	default:
		return nil
	}
}

// incidentChange applies the end of one session to the recorded incidents.
type incidentChange struct {
	tx      *sql.Tx
	session escalation.Session
	at      time.Time
	// known holds the incidents without their chains and costs. Reading these for all incidents would take too long.
	known []incidentRow
	// own holds the IDs of the incidents that the chain works on.
	own []string
}

func (c *incidentChange) apply(ctx context.Context) error {
	incidents := make([]escalation.Incident, len(c.known))
	for i := range c.known {
		incidents[i] = c.known[i].Incident
	}
	healed := c.session.Heals(incidents, c.own)
	sightings := c.session.Sightings(incidents, c.own)
	for _, sighting := range sightings {
		if err := c.sight(ctx, sighting); err != nil {
			return fmt.Errorf("record what is wrong with %q: %w", sighting.Fault.Services, err)
		}
	}
	for _, id := range healed {
		if err := c.heal(ctx, id); err != nil {
			return fmt.Errorf("resolve %s: %w", id, err)
		}
	}
	return c.moveOn(ctx, sightings)
}

const movedOnQuery = "UPDATE incident_chains SET status = $3, outcome = $4, rule = $5, reason = '', at = $6 WHERE " +
	ofChainRun +
	" AND incident_id = $7 AND " + working

// moveOn ends the chain's work on its incidents that are resolved and that the session has not found again. Without it,
// a fault that comes back would count as repaired by a chain that works on something else.
func (c *incidentChange) moveOn(ctx context.Context, sightings []escalation.Sighting) error {
	other := []escalation.Purpose{escalation.PurposeHandoff, escalation.PurposeReview, escalation.PurposeAuthor}
	if c.session.Verdict == nil || slices.Contains(other, c.session.Purpose) {
		return nil
	}
	for _, id := range c.own {
		seen := slices.ContainsFunc(sightings, func(s escalation.Sighting) bool {
			return s.Incident != nil &&
				s.Incident.ID == id
		})
		open := slices.ContainsFunc(c.known, func(row incidentRow) bool {
			return row.ID == id &&
				row.ResolvedAt.IsZero()
		})
		if seen || open {
			continue
		}
		args := append(runArgs(runOf(c.session)),
			string(escalation.ChainEnded), string(escalation.OutcomeResolved), string(escalation.RuleVerdict),
			c.at.UnixMilli(), incidentRowOf(id))
		if _, err := c.tx.ExecContext(ctx, movedOnQuery, args...); err != nil {
			return fmt.Errorf("end the work on %s: %w", id, err)
		}
	}
	return nil
}

// heal records that the session has resolved an incident.
func (c *incidentChange) heal(ctx context.Context, id string) error {
	row, err := c.completed(ctx, id)
	if err != nil {
		return err
	}
	row.resolve(c.resolution(row), c.session.ChainID, c.session.SessionID, c.at)
	return updateIncident(ctx, c.tx, *row)
}

// resolution returns how the session has resolved an incident.
func (c *incidentChange) resolution(row *incidentRow) escalation.IncidentEnd {
	if row.IsFailedLook() {
		return escalation.IncidentHealed
	}
	if c.session.Verdict.Status == escalation.VerdictResolved {
		return escalation.IncidentRepaired
	}
	// If an earlier session of the chain has repaired the incident, the current session confirms the repair.
	for _, chain := range row.Chains {
		if chain.ChainID == c.session.ChainID && chain.FirstRunID == c.session.FirstRunID && chain.Tier > 0 {
			return escalation.IncidentRepaired
		}
	}
	return escalation.IncidentHealed
}

// completed returns a known incident with its chains and costs.
func (c *incidentChange) completed(ctx context.Context, id string) (*incidentRow, error) {
	at := slices.IndexFunc(c.known, func(row incidentRow) bool { return row.ID == id })
	return &c.known[at], completeAll(ctx, c.tx, c.known[at:at+1])
}

// sight records a fault. For a new fault, it opens an incident. For a known fault, it updates the incident. If the
// incident was resolved while the session ran, the session says nothing about it.
func (c *incidentChange) sight(ctx context.Context, sighting escalation.Sighting) error {
	fault := sighting.Fault
	if sighting.Overtaken {
		return nil
	}
	if sighting.Incident == nil {
		row := incidentRow{Incident: escalation.Incident{
			Services: append([]string{}, fault.Services...), Kind: fault.Kind, Severity: fault.Severity,
			Summary:  escalation.ClipIncidentText(fault.Summary),
			OpenedAt: c.at, LastSeenAt: c.at,
		}}
		query, args := insertInto("incidents", incidentFields(&row)[1:])
		if err := c.tx.QueryRowContext(ctx, query+" RETURNING id", args...).Scan(&row.row); err != nil {
			return err
		}
		return c.link(ctx, row.row)
	}
	row, err := c.completed(ctx, sighting.Incident.ID)
	if err != nil {
		return err
	}
	if !row.ResolvedAt.IsZero() {
		row.comeBack(c.at)
		row.Severity = fault.Severity
	}
	row.LastSeenAt = later(row.LastSeenAt, c.at)
	if !sighting.Covered() {
		row.Services = escalation.MergeServices(row.Services, fault.Services)
	}
	if row.Kind == "" {
		row.Kind = fault.Kind
	}
	// Only the finding of another chain sets WorseAt. The incident's own chain knows its own findings, and shows them
	// to a person who accepts the state.
	if sighting.Worsens(row.workedSince()) && !slices.Contains(c.own, row.ID) {
		row.WorseAt, row.Acknowledged = later(row.WorseAt, c.at), nil
	}
	if escalation.MoreSevere(fault.Severity, row.Severity) {
		row.Severity, row.Acknowledged = fault.Severity, nil
	}
	if sighting.Issue >= 0 || row.Summary == "" || sighting.News == "" {
		row.Summary = escalation.ClipIncidentText(fault.Summary)
	}
	if err := updateIncident(ctx, c.tx, *row); err != nil {
		return err
	}
	return c.link(ctx, row.row)
}

// workedSince returns the latest time at which a chain met the incident, among the chains that repair or wait; zero
// if there is no such chain.
func (i *incidentRow) workedSince() (since time.Time) {
	for _, chain := range i.Chains {
		if chain.AtWork() {
			since = later(since, chain.Since)
		}
	}
	return since
}

// meetAgain lets a chain work again on an incident with which it had ended its work.
const meetAgain = `DO UPDATE SET status = excluded.status, outcome = '', rule = '', at = excluded.at
WHERE incident_chains.status = 'ended' AND incident_chains.outcome = 'resolved'`

// link records in the table incident_chains that the session's chain has met the incident.
func (c *incidentChange) link(ctx context.Context, incident int64) error {
	row := incidentChainRow{incident: incident, IncidentChain: escalation.IncidentChain{
		ChainID: c.session.ChainID, FirstRunID: c.session.FirstRunID, Since: c.at,
		ChainProgress: escalation.ChainProgress{Status: escalation.ChainLooking, At: c.at, DryRun: c.session.DryRun},
	}}
	return linkChain(ctx, c.tx, row, meetAgain)
}

// linkChain inserts the work of a chain on an incident. The parameter existing says what to do if there is such a row.
func linkChain(ctx context.Context, tx *sql.Tx, row incidentChainRow, existing string) error {
	query, args := insertInto("incident_chains", incidentChainFields(&row))
	_, err := tx.ExecContext(ctx, query+" ON CONFLICT (incident_id, chain_id, first_run_id) "+existing, args...)
	return err
}

// linkAll records that a chain has met the incidents with the given IDs. The argument row describes the chain.
func linkAll(ctx context.Context, tx *sql.Tx, row incidentChainRow, ids []string) error {
	for _, id := range ids {
		err := tx.QueryRowContext(ctx, "SELECT id FROM incidents WHERE id = $1", incidentRowOf(id)).Scan(&row.incident)
		if errors.Is(err, sql.ErrNoRows) {
			continue // the chain's input may name an incident that is not in these records
		}
		if err != nil {
			return err
		}
		if err := linkChain(ctx, tx, row, "DO NOTHING"); err != nil {
			return err
		}
	}
	return nil
}

const attemptQuery = "UPDATE incident_chains SET tier = CASE WHEN tier < $3 THEN $3 ELSE tier END, did = $4 WHERE " +
	ofChainRun

// keepAttempt records the repair that a session has attempted, in each incident of the session's chain.
func keepAttempt(ctx context.Context, tx *sql.Tx, session escalation.Session) error {
	if !session.Repairs() || session.Verdict == nil && !session.BeganWork() {
		return nil
	}
	did := escalation.NewPastRepair(session).Did
	_, err := tx.ExecContext(ctx, attemptQuery, append(runArgs(runOf(session)), int(session.Tier), did)...)
	return err
}

// resolve sets the fields that mark the incident as resolved. The argument by is the ID of the chain or the name of
// the person that resolved it. The argument session is the conversation.
func (i *incidentRow) resolve(how escalation.IncidentEnd, by, session string, at time.Time) {
	i.ResolvedAt, i.ResolvedBy, i.ResolvedReason, i.Resolution, i.resolvedSession = at, by, "", how, session
	i.ResolvedVerified = false
}

// comeBack marks a resolved incident as open again.
func (i *incidentRow) comeBack(at time.Time) {
	if i.Resolution == escalation.IncidentRepaired {
		i.Returns = append(i.Returns, at.UTC())
		i.Returns = i.Returns[max(0, len(i.Returns)-escalation.MaxReturns):]
	}
	i.Returned++
	i.ReturnedAt, i.WorseAt, i.Acknowledged = at, time.Time{}, nil
	i.resolve("", "", "", time.Time{})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func updateIncident(ctx context.Context, tx *sql.Tx, row incidentRow) error {
	fields := incidentFields(&row)[1:]
	query := fmt.Sprintf("UPDATE incidents SET %s WHERE id = $%d", assignments(fields), len(fields)+1) //nolint:gosec // our own columns
	_, err := tx.ExecContext(ctx, query, append(values(fields), row.row)...)
	return err
}

const leaveQuery = "DELETE FROM incident_chains WHERE " + ofChainRun + " AND incident_id = $3"

func recordProgress(
	ctx context.Context, tx *sql.Tx, chain escalation.ChainRun, progress escalation.ChainProgress,
) error {
	if err := endEarlier(ctx, tx, chain, progress.At); err != nil {
		return err
	}
	link := incidentChainRow{IncidentChain: escalation.IncidentChain{
		ChainID: chain.ChainID, FirstRunID: chain.FirstRunID, Since: progress.At, ChainProgress: progress,
	}}
	if err := linkAll(ctx, tx, link, progress.Owns); err != nil {
		return err
	}
	for _, id := range progress.Leaves {
		if _, err := tx.ExecContext(ctx, leaveQuery, append(runArgs(chain), incidentRowOf(id))...); err != nil {
			return err
		}
	}
	progress.Reason = storable(progress.Reason)
	row := incidentChainRow{IncidentChain: escalation.IncidentChain{ChainProgress: progress}}
	fields := incidentChainFields(&row)[3:11] // status to dry_run
	set, last := assignments(fields), len(fields)
	query := fmt.Sprintf( //nolint:gosec // our own columns
		"UPDATE incident_chains SET %s WHERE chain_id = $%d AND first_run_id = $%d AND %s",
		set, last+1, last+2, working)
	args := append(values(fields), runArgs(chain)...)
	if progress.Rule == escalation.RuleIssues { // what is recorded about an issue says more
		query += " AND status <> 'ended'"
	}
	if len(progress.Only) == 0 {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	}
	query += fmt.Sprintf(" AND incident_id = $%d", len(args)+1)
	for _, id := range progress.Only {
		if _, err := tx.ExecContext(ctx, query, append(slices.Clone(args), incidentRowOf(id))...); err != nil {
			return err
		}
	}
	return nil
}

// claimIncidents records that the session's chain works on the incidents of the request. If the session repairs, or
// writes the handoff for a repair, claimIncidents also records that the chain repairs the incidents on which it
// works.
func claimIncidents(
	ctx context.Context, tx *sql.Tx, request escalation.AdmissionRequest, policy escalation.Policy,
) error {
	chain := escalation.ChainRun{ChainID: request.ChainID, FirstRunID: request.FirstRunID}
	if err := endEarlier(ctx, tx, chain, request.At); err != nil {
		return err
	}
	link := incidentChainRow{IncidentChain: escalation.IncidentChain{
		ChainID: request.ChainID, FirstRunID: request.FirstRunID, Since: request.At,
		ChainProgress: escalation.ChainProgress{Status: escalation.ChainLooking, At: request.At},
	}}
	if err := linkAll(ctx, tx, link, request.Incidents); err != nil {
		return err
	}
	if !request.Repairs(policy) && request.Purpose != escalation.PurposeHandoff {
		return nil
	}
	repairing := escalation.ChainProgress{Status: escalation.ChainRepairing, At: request.At}
	return recordProgress(ctx, tx, chain, repairing)
}

const endEarlierQuery = `
UPDATE incident_chains SET status = $1, outcome = $2, rule = '', reason = 'a later chain has the same workflow ID'
WHERE chain_id = $3 AND first_run_id <> $4 AND at < $5 AND status <> $1`

// endEarlier records that earlier chains with the same workflow ID have ended, because Temporal runs only one of them
// at a time. A terminated chain could not record its end.
func endEarlier(ctx context.Context, tx *sql.Tx, chain escalation.ChainRun, at time.Time) error {
	_, err := tx.ExecContext(ctx, endEarlierQuery, string(escalation.ChainEnded), string(escalation.OutcomeFailed),
		chain.ChainID, chain.FirstRunID, at.UnixMilli())
	return err
}
