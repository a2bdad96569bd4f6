package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

// OpenSession decides whether session may start. If so, OpenSession records the session with its budget, before the
// session's process starts. If the session repairs services, OpenSession also locks these services for its chain. All
// of this is one transaction. So concurrent sessions on any number of hosts never reserve more than the budgets allow,
// and no two chains lock the same service.
//
// The store sets ID, Sequence, BudgetUSD, Forced and DryRun, and ignores the values of these fields in session. If
// session.Status is empty, it becomes SessionRunning. The store also sets four fields of request from session: ChainID,
// Tier, Purpose, and At from session.StartedAt. The time StartedAt comes from Temporal. So hosts with different clocks
// agree on the day and on every time window, and a late retry is judged by the same time as the first call.
//
// A refusal is not an error, and nothing is written. If SessionID is already recorded, OpenSession grants the session
// again and returns the existing record with its budget unchanged. It also locks those of the session's services that
// are free again.
//
// If the records lack a session that the session refers to, and Temporal does not know that one either, OpenSession
// records the session without a parent, so that the chain continues.
//
// The error is ErrConflict if the existing record belongs to another chain. It is ErrNotFound if session.ParentID or
// request.Parent is unknown, or if request.Previous is not recorded as ended. It is ErrInvalid if session.ChainID,
// session.SessionID or session.StartedAt is empty, or if policy has no entry for session.Tier.
func (s *Store) OpenSession(
	ctx context.Context, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) (opening escalation.AdmissionResult, err error) {
	defer s.count(OpOpenSession, &err)
	id := session.SessionID
	session.Report = s.hooks.report(session.Report)
	if session, err = canonical(session); err == nil {
		request, err = canonical(request)
	}
	if err == nil {
		err = checkOpening(session)
	}
	request.ChainID, request.FirstRunID = session.ChainID, session.FirstRunID
	request.Tier, request.Purpose, request.At = session.Tier, session.Purpose, session.StartedAt
	if err == nil {
		err = checkRequest(request, policy)
	}
	recovered := false
	open := func() error {
		return s.write(ctx, func(tx *sql.Tx) (err error) {
			opening, err = openOnce(ctx, tx, session, request, policy)
			return err
		})
	}
	if err == nil {
		err = s.recovering(ctx, func() error {
			err := open()
			if recovered && errors.Is(err, ErrNotFound) {
				session.ParentID, request.Previous, request.Parent = 0, "", ""
				return open()
			}
			recovered = true
			return err
		}, session.ChainID, request.ParentChain)
	}
	if err != nil {
		return escalation.AdmissionResult{}, fmt.Errorf("record session %q: %w", id, err)
	}
	return opening, nil
}

// Review returns the admission that OpenSession would return now. Review changes nothing.
func (s *Store) Review(
	ctx context.Context, request escalation.AdmissionRequest, policy escalation.Policy,
) (admission escalation.Admission, err error) {
	defer s.count(OpReview, &err)
	if request, err = canonical(request); err == nil {
		err = checkRequest(request, policy)
	}
	if err == nil {
		err = s.read(ctx, func(tx *sql.Tx) error {
			facts, err := readFacts(ctx, tx, request, policy)
			admission = escalation.Admit(policy, request, facts)
			return err
		})
	}
	if err != nil {
		return escalation.Admission{}, fmt.Errorf("review a session of %s for chain %q: %w", request.Tier,
			request.ChainID, err)
	}
	return admission, nil
}

func checkRequest(request escalation.AdmissionRequest, policy escalation.Policy) error {
	switch {
	case request.At.IsZero():
		return fmt.Errorf("%w: it has no time", ErrInvalid)
	case !request.Tier.Valid():
		return fmt.Errorf("%w: tier %d is none", ErrInvalid, int(request.Tier))
	case int(request.Tier) > len(policy.Tiers):
		return fmt.Errorf("%w: the policy has no %s", ErrInvalid, request.Tier)
	default:
		return nil
	}
}

// openOnce records session if the session is admitted. If session is already recorded, openOnce returns the existing
// record.
func openOnce(
	ctx context.Context, tx *sql.Tx, session escalation.Session, request escalation.AdmissionRequest,
	policy escalation.Policy,
) (opening escalation.AdmissionResult, err error) {
	existing, err := recorded(ctx, tx, session)
	if err == nil && existing == nil {
		session.ParentID, err = checkEarlier(ctx, tx, session.ParentID, request)
	}
	if err != nil {
		return opening, err
	}
	facts, err := readFacts(ctx, tx, request, policy)
	if err != nil {
		return opening, err
	}
	opening.Services = escalation.RecentStates(facts.Services, request.Services)
	if existing != nil {
		opening.Session = *existing
	} else {
		admission := escalation.Admit(policy, request, facts)
		if !admission.Granted {
			opening.Refusal = &admission
			return opening, nil
		}
		session.BudgetUSD, session.Forced, session.DryRun = admission.BudgetUSD, admission.Forced, policy.DryRun
		if opening.Session, err = recordSession(ctx, tx, session); err != nil {
			return opening, err
		}
	}
	if request.Repairs(policy) {
		if err := lockServices(ctx, tx, opening.Session, request.Services); err != nil {
			return opening, err
		}
	}
	if err := claimIncidents(ctx, tx, request, policy); err != nil {
		return opening, fmt.Errorf("claim its incidents: %w", err)
	}
	if opening.IncidentBrief, err = readBrief(ctx, tx, request); err != nil {
		return opening, fmt.Errorf("read its incidents: %w", err)
	}
	return opening, nil
}

// checkEarlier checks that the records have the earlier sessions of request. They lack these if they were restored from
// a backup. It returns the number of the session's parent, which is parent unless the records were restored.
func checkEarlier(ctx context.Context, tx *sql.Tx, parent int64, request escalation.AdmissionRequest) (int64, error) {
	if request.Previous != "" {
		previous, err := bySessionID(ctx, tx, request.Previous)
		if err == nil && previous.EndedAt.IsZero() {
			err = fmt.Errorf("%w of its end", ErrNotFound)
		}
		if err != nil {
			return 0, fmt.Errorf("the previous session %q of its chain: %w", request.Previous, err)
		}
	}
	if request.Parent == "" {
		return parent, nil
	}
	origin, err := bySessionID(ctx, tx, request.Parent)
	if err != nil {
		return 0, fmt.Errorf("its parent %q: %w", request.Parent, err)
	}
	return origin.ID, nil
}

// readFacts reads the facts on which the admission of request depends.
func readFacts(
	ctx context.Context, q querier, request escalation.AdmissionRequest, policy escalation.Policy,
) (facts escalation.AdmissionFacts, err error) {
	if facts.LimitedUntil, facts.LimitedModel, err = limitOf(ctx, q, request.At,
		policy.For(request.Tier).Model); err != nil {
		return facts, fmt.Errorf("read the limit of the account: %w", err)
	}
	if policy.DayBudgetUSD > 0 { // this reads all sessions of the day
		if facts.DaySpentUSD, facts.DayReservedUSD, err = daySpent(ctx, q, request.At); err != nil {
			return facts, fmt.Errorf("add up what the day has cost: %w", err)
		}
	}
	if policy.ChainBudgetUSD > 0 { // this reads all sessions of the chain, and a conversation has hundreds
		// A chain runs one session at a time. If the records have another open session of this chain, a reset has
		// discarded that session. So the budget of that session is not counted.
		if facts.ChainSpentUSD, _, err = spent(ctx, q, chainSpentQuery, request.ChainID,
			request.FirstRunID); err != nil {
			return facts, fmt.Errorf("add up what the chain has cost: %w", err)
		}
	}
	entries, err := ledger(ctx, q, request.At.Add(-policy.Cooldowns.Window()))
	if err != nil {
		return facts, fmt.Errorf("read the ledger: %w", err)
	}
	facts.Services = policy.Cooldowns.States(entries, request.Services, request.At)
	if policy.TalksPerPerson > 0 && request.Purpose == escalation.PurposeTalk {
		if facts.TalksOfActor, err = talksOf(ctx, q, request); err != nil {
			return facts, fmt.Errorf("count the conversations that answer the same person: %w", err)
		}
	}
	if !request.Repairs(policy) {
		return facts, nil
	}
	if facts.Escalations, facts.Escalated, err = escalations(ctx, q, request, policy.EscalationLimit); err != nil {
		return facts, fmt.Errorf("count the chains that escalated: %w", err)
	}
	if facts.Busy, err = busyServices(ctx, q, request); err != nil {
		return facts, fmt.Errorf("read who repairs the services: %w", err)
	}
	return facts, nil
}

// limitQuery returns the end of the account's limit for a model that the latest session has met, unless a model that it
// concerns has answered a later session: a person had that one started, and the account has another limit since.
const limitQuery = `
SELECT limited_until, limited_model FROM sessions WHERE limited_until > $1 AND $2 LIKE '%' || limited_model || '%' AND NOT EXISTS (
    SELECT 1 FROM sessions AS later
    WHERE later.started_at > sessions.ended_at AND later.output_tokens > 0 AND later.limited_until IS NULL
        AND lower(later.model) LIKE '%' || sessions.limited_model || '%')
ORDER BY ended_at DESC LIMIT 1`

// limitOf returns the end of the account's limit for a model, and the models that it concerns; zero if no session has
// met one that still holds.
func limitOf(ctx context.Context, q querier, at time.Time, model string) (until time.Time, of string, err error) {
	err = q.QueryRowContext(ctx, limitQuery, at.UnixMilli(), strings.ToLower(model)).Scan(millis{&until}, &of)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, "", nil
	}
	return until, of, err
}

// spentQuery returns a query for two sums over the sessions that condition selects. The first sum is the cost of closed
// sessions. It includes the cost in replaced reports, because that cost was paid, too. A closed session with unknown
// cost (see escalation.Session.CostUnknown) counts with its budget. The second sum is the budgets of open sessions.
func spentQuery(condition string) string {
	return `
SELECT COALESCE(SUM(CASE WHEN ended_at IS NULL THEN 0
    WHEN cost_estimated AND attempts = 0 AND budget_usd > cost_usd THEN budget_usd ELSE cost_usd END), 0) + (
    SELECT COALESCE(SUM(replaced_reports.cost_usd), 0)
    FROM sessions JOIN replaced_reports ON replaced_reports.session_id = sessions.session_id
    WHERE ` + condition + `
), COALESCE(SUM(CASE WHEN ended_at IS NULL THEN budget_usd ELSE 0 END), 0)
FROM sessions WHERE ` + condition
}

var (
	daySpentQuery   = spentQuery("sessions.started_at >= $1 AND sessions.started_at < $2")
	chainSpentQuery = spentQuery("chain_id = $1 AND first_run_id = $2")
)

// spent returns the results of a spentQuery, in US dollars.
func spent(ctx context.Context, q querier, query string, args ...any) (closed, reserved float64, err error) {
	err = q.QueryRowContext(ctx, query, args...).Scan(&closed, &reserved)
	return closed, reserved, err
}

const removedSpentQuery = "SELECT COALESCE(SUM(usd + unknown_usd), 0)" + removedSpending

// daySpent returns two sums over the sessions that started on one day (UTC): the cost of closed sessions, and the
// reservations of open sessions. The argument at is any time of that day. Sessions whose records were removed count,
// too.
func daySpent(ctx context.Context, q querier, at time.Time) (closed, reserved float64, err error) {
	day := calendar.Of(at.UTC())
	begin, end := day.Begin(time.UTC), day.End(time.UTC)
	var removed float64
	if err := q.QueryRowContext(ctx, removedSpentQuery, quarterOf(begin), quarterOf(end)).Scan(&removed); err != nil {
		return 0, 0, err
	}
	closed, reserved, err = spent(ctx, q, daySpentQuery, begin.UnixMilli(), end.UnixMilli())
	return closed + removed, reserved, err
}

const (
	// The conditions on tier and purpose match escalation.AdmissionRequest.Repairs. Without MATERIALIZED, SQLite would
	// read the sessions of all chains before it selects the distinct chains.
	escalationsQuery = `
WITH repairs AS MATERIALIZED (
    SELECT chain_id, first_run_id FROM sessions
    WHERE started_at > $1 AND (chain_id <> $2 OR first_run_id <> $3) AND tier >= $4 AND purpose IN ($5, $6) AND NOT dry_run
)
SELECT COUNT(*) FROM (SELECT DISTINCT chain_id, first_run_id FROM repairs) AS chains`

	escalatedQuery = `
SELECT COUNT(*) > 0 FROM sessions WHERE chain_id = $1 AND first_run_id = $2 AND tier >= $3 AND purpose IN ($4, $5) AND NOT dry_run`
)

// escalations counts the other chains that have repaired within the time window of limit. It also reports whether the
// request's own chain has ever repaired. An earlier chain with the same workflow ID counts as another chain.
func escalations(
	ctx context.Context, q querier, request escalation.AdmissionRequest, limit escalation.Limit,
) (others int, own bool, err error) {
	const tier = int(escalation.TierSafeRepair)
	const work, continued = string(escalation.PurposeTier), string(escalation.PurposeContinuation)
	since := request.At.Add(-limit.Window.Std())
	chain, run := request.ChainID, request.FirstRunID
	err = q.QueryRowContext(ctx, escalationsQuery, since.UnixMilli(), chain, run, tier, work, continued).Scan(&others)
	if err == nil {
		err = q.QueryRowContext(ctx, escalatedQuery, chain, run, tier, work, continued).Scan(&own)
	}
	return others, own, err
}
