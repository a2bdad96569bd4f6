package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Recovered describes what Recover has recorded.
type Recovered struct {
	// Sessions counts the sessions that were missing, or recorded without their report although they had ended.
	Sessions int `json:"sessions"`
	// CostUSD is the cost of these sessions, in US dollars.
	CostUSD float64 `json:"cost_usd"`
}

// Recover records those sessions and events of a chain that the records lack, because the records were restored from a
// backup. The argument is the state that the chain itself has in Temporal. Records that are complete stay unchanged.
//
// A recovered session gets a new number. As in CloseSession, its verdict adds actions to the ledger, and opens and
// resolves incidents. A recovered session that still runs and repairs locks its services again. If the chain waits at a
// gate or has ended, and the records do not say so, Recover records that with its incidents, and releases its services.
// Recover cannot bring back the decisions on calls, and the charges of calls that no verdict names.
func (s *Store) Recover(ctx context.Context, chain escalation.Chain) (recovered Recovered, err error) {
	if chain, err = canonical(s.hooks.chain(chain)); err == nil {
		err = s.write(ctx, func(tx *sql.Tx) (err error) {
			r := recovery{tx: tx, chain: chain, numbers: map[int64]int64{}}
			err = r.record(ctx)
			recovered = r.done
			return err
		})
	}
	if err != nil {
		return Recovered{}, fmt.Errorf("record chain %q again: %w", chain.ID, err)
	}
	return recovered, nil
}

// recovery records one chain again.
type recovery struct {
	tx    *sql.Tx
	chain escalation.Chain
	// numbers maps the numbers that the chain's sessions have in Temporal to their numbers in the records.
	numbers map[int64]int64
	done    Recovered
}

func (r *recovery) record(ctx context.Context) error {
	for i := range r.chain.Sessions {
		if err := r.session(ctx, r.chain.Sessions[i]); err != nil {
			return fmt.Errorf("session %q: %w", r.chain.Sessions[i].SessionID, err)
		}
	}
	events := slices.Clone(r.chain.Events)
	for i := range events {
		if len(r.chain.Sessions) > 0 {
			events[i].FirstRunID = r.chain.Sessions[0].FirstRunID
		}
	}
	if err := appendEvents(ctx, r.tx, events); err != nil {
		return err
	}
	return r.progress(ctx)
}

// session records a session of the chain if the records lack the session or its end.
func (r *recovery) session(ctx context.Context, session escalation.Session) error {
	existing, err := recorded(ctx, r.tx, session)
	if err != nil {
		return err
	}
	missing := existing == nil
	if missing {
		if existing, err = r.open(ctx, session); err != nil {
			return err
		}
	}
	r.numbers[session.ID] = existing.ID
	// A sweep may have closed the record without a report, before the chain could be asked.
	unreported := existing.EndedAt.IsZero() || existing.CostUnknown() && !session.CostUnknown()
	ends := unreported && !session.EndedAt.IsZero()
	if ends {
		end := closing{sessionID: session.SessionID, report: session.Report, endedAt: session.EndedAt}
		if err := checkClosing(end); err != nil {
			return err
		}
		if _, err := closeOnce(ctx, r.tx, end); err != nil {
			return err
		}
	}
	if missing || ends {
		r.done.Sessions++
		r.done.CostUSD += session.CostUSD
	}
	return nil
}

// open records a session as running. If the session still runs, open also locks the services that it repairs.
func (r *recovery) open(ctx context.Context, session escalation.Session) (*escalation.Session, error) {
	if err := checkOpening(session); err != nil {
		return nil, err
	}
	var err error
	if session.ParentID, err = r.parent(ctx, session); err != nil {
		return nil, fmt.Errorf("find its parent: %w", err)
	}
	if session.Sequence, err = r.sequence(ctx, session); err != nil {
		return nil, err
	}
	running := session.EndedAt.IsZero()
	session.EndedAt, session.Report = time.Time{}, escalation.Report{Status: escalation.SessionRunning}
	opened, err := insertSession(ctx, r.tx, session)
	if err == nil && running && opened.Repairs() {
		err = lockServices(ctx, r.tx, opened, r.chain.Services)
	}
	return &opened, err
}

// parent returns the number that the parent of a missing session has in the records; 0 if the records lack the parent.
func (r *recovery) parent(ctx context.Context, session escalation.Session) (int64, error) {
	if number, known := r.numbers[session.ParentID]; known || session.ParentID == 0 {
		return number, nil
	}
	parent, err := oneSession(ctx, r.tx, selectSessions+" WHERE id = $1", session.ParentID)
	switch {
	case errors.Is(err, ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case parent.StartedAt.After(session.StartedAt): // after the restore, a new session has got the parent's number
		return 0, nil
	default:
		return parent.ID, nil
	}
}

// sequence returns the place of a missing session in its chain: its own or, if another session has that place, the
// next.
func (r *recovery) sequence(ctx context.Context, session escalation.Session) (int, error) {
	const query = "SELECT COUNT(*) FROM sessions WHERE chain_id = $1 AND sequence = $2"
	var taken int
	if err := r.tx.QueryRowContext(ctx, query, session.ChainID, session.Sequence).Scan(&taken); err != nil {
		return 0, fmt.Errorf("number it in its chain: %w", err)
	}
	if taken == 0 && session.Sequence > 0 {
		return session.Sequence, nil
	}
	return nextSequence(ctx, r.tx, session)
}

// releaseEarlierQuery releases the locks that a chain took until a time.
const releaseEarlierQuery = releaseQuery + " AND since <= $2"

// progress records with the chain's incidents that the chain has ended or waits at a gate. Then the chain locks no
// services.
func (r *recovery) progress(ctx context.Context) error {
	gate := r.chain.OpenGate()
	var progress escalation.ChainProgress
	switch {
	case r.chain.Outcome != "":
		progress = escalation.ChainProgress{
			Status: escalation.ChainEnded, Outcome: r.chain.Outcome, At: r.chain.EndedAt, Rule: r.chain.Rule,
			Reason: r.chain.Reason,
		}
	case gate != nil:
		progress = escalation.ChainProgress{
			Status: escalation.ChainWaiting, Rule: gate.Rule, Reason: gate.Reason, Until: gate.ExpiresAt,
			At: gate.OpenedAt,
		}
	default:
		return nil
	}
	last := r.chain.Last()
	if last == nil {
		return nil // it has met no incident
	}
	progress.MaxTier, progress.DryRun = r.chain.MaxTier, r.chain.DryRun
	progress.Reason = escalation.ClipIncidentText(progress.Reason)
	run := escalation.ChainRun{ChainID: r.chain.ID, FirstRunID: last.FirstRunID}
	if known, err := r.knows(ctx, run, progress.At); known || err != nil {
		return err
	}
	if _, err := r.tx.ExecContext(ctx, releaseEarlierQuery, run.ChainID, progress.At.UnixMilli()); err != nil {
		return fmt.Errorf("release its services: %w", err)
	}
	return recordProgress(ctx, r.tx, run, progress)
}

const recordedProgressQuery = "SELECT COALESCE(MAX(at), 0) FROM incident_chains WHERE " + ofChainRun +
	" AND status <> 'looking'"

// knows reports whether the records have progress of the chain from a time, or from later. Then the chain has recorded
// it after the backup, and it may know more than its state in Temporal that the caller has read.
func (r *recovery) knows(ctx context.Context, run escalation.ChainRun, at time.Time) (bool, error) {
	var latest int64
	err := r.tx.QueryRowContext(ctx, recordedProgressQuery, run.ChainID, run.FirstRunID).Scan(&latest)
	return latest >= at.UnixMilli(), err
}

// SkipNumbers makes the records give numbers above those of chains to new sessions and incidents. Call it after a
// restore from a backup, so that no number of a lost session or incident is given to another one.
func (s *Store) SkipNumbers(ctx context.Context, chains []escalation.Chain) error {
	latest := map[string]int64{}
	for i := range chains {
		for j := range chains[i].Sessions {
			latest["sessions"] = max(latest["sessions"], chains[i].Sessions[j].ID)
		}
		for _, incident := range chains[i].Incidents {
			latest["incidents"] = max(latest["incidents"], incidentRowOf(incident.ID))
		}
	}
	err := s.write(ctx, func(tx *sql.Tx) error {
		for table, number := range latest {
			if err := skipNumbers(ctx, copyEnd{tx, s.dialect}, table, number); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("skip the numbers of lost records: %w", err)
	}
	return nil
}

// skipNumbers makes a table give no number up to latest to a new row.
func skipNumbers(ctx context.Context, end copyEnd, table string, latest int64) error {
	var given int64
	err := end.tx.QueryRowContext(ctx, fmt.Sprintf(end.dialect.latestNumber, table)).Scan(&given)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // no row: the table has given no number
		return err
	}
	if given >= latest {
		return nil
	}
	return end.continueAfter(ctx, table, latest)
}
