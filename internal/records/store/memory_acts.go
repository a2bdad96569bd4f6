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
	"github.com/claudeops/claudeops/internal/escalation/memory"
)

// MaxCandidates limits the candidates. If there are as many, further proposals are dropped, so that no agent can fill
// the records.
const MaxCandidates = 500

// maxProposals limits the proposals that are kept of one memory. A look that proposes the same each time must not fill
// the records.
const maxProposals = 50

// ProposeMemories records proposals of a session. It drops proposals that memory.Check refuses. A proposal with the
// kind, the service and the words of a known memory becomes a source of that memory; if a second incident has now shown
// it, the memory is confirmed. Recording the same proposal of a session again changes nothing. ProposeMemories returns
// the memories, except those that a person has deleted.
func (s *Store) ProposeMemories(
	ctx context.Context, source memory.Source, proposals []escalation.MemoryProposal,
) (known []memory.Memory, err error) {
	defer s.count(OpMemories, &err)
	proposals = slices.Clone(proposals)
	for i := range proposals {
		proposals[i] = s.hooks.proposal(proposals[i])
	}
	err = s.write(ctx, func(tx *sql.Tx) (err error) {
		known, err = proposeMemories(ctx, tx, source, proposals)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("record what session %q proposes to remember: %w", source.SessionID, err)
	}
	return known, nil
}

// learn records the memories that the verdict of an ended session proposes. Verdicts come from agents that read the
// output of commands. Call it after applyFindings, which records the incidents of the session's chain.
func learn(ctx context.Context, tx *sql.Tx, session escalation.Session, at time.Time) error {
	if session.Verdict == nil || len(session.Verdict.Memories) == 0 {
		return nil
	}
	rows, err := incidentsOf(ctx, tx, runOf(session))
	if err != nil {
		return fmt.Errorf("read the incidents of the chain: %w", err)
	}
	source := memory.Source{Trust: memory.TrustOutput, At: at, ChainID: session.ChainID, SessionID: session.SessionID}
	for _, row := range rows {
		source.Incidents = append(source.Incidents, incidentPrefix+strconv.FormatInt(row, 10))
	}
	// A verdict of an older release may have more than the schema allows.
	proposals := session.Verdict.Memories[:min(len(session.Verdict.Memories), escalation.MaxMemories)]
	_, err = proposeMemories(ctx, tx, source, proposals)
	return err
}

func proposeMemories(
	ctx context.Context, tx *sql.Tx, source memory.Source, proposals []escalation.MemoryProposal,
) (known []memory.Memory, err error) {
	source.Act = memory.ActProposed
	for _, proposal := range proposals {
		clean, err := memory.Check(proposal)
		if err != nil {
			continue // the verdict in the record of the session shows it
		}
		row, err := propose(ctx, tx, source, clean)
		if err != nil {
			return nil, err
		}
		if row.row != 0 && row.Status != memory.StatusDeleted {
			known = append(known, row.complete())
		}
	}
	return known, nil
}

// propose records one proposal. If there is no room for another candidate, the result has no row number. A confirmed
// memory gets no more proposals. Of a candidate the latest proposals suffice: two that would confirm it have confirmed
// it.
func propose(
	ctx context.Context, tx *sql.Tx, source memory.Source, proposal escalation.MemoryProposal,
) (memoryRow, error) {
	row, err := sameMemory(ctx, tx, proposal)
	if errors.Is(err, ErrNotFound) {
		var candidates int
		err = tx.QueryRowContext(ctx, candidatesQuery).Scan(&candidates)
		if err != nil || candidates >= MaxCandidates {
			return memoryRow{}, err
		}
		return newMemory(ctx, tx, source, proposal)
	}
	proposed := func(s memory.Source) bool { return s.Act == memory.ActProposed && s.SessionID == source.SessionID }
	if err != nil || row.Status == memory.StatusConfirmed || slices.ContainsFunc(row.Sources, proposed) {
		return row, err
	}
	if row, err = acted(ctx, tx, row, source); err == nil {
		_, err = tx.ExecContext(ctx, forgetProposalsQuery, row.row, maxProposals)
	}
	return row, err
}

const forgetProposalsQuery = `
DELETE FROM memory_sources WHERE memory_id = $1 AND act = 'proposed' AND id NOT IN (
    SELECT id FROM memory_sources WHERE memory_id = $1 AND act = 'proposed' ORDER BY id DESC LIMIT $2)`

const candidatesQuery = "SELECT COUNT(*) FROM memories WHERE status = 'candidate'"

// sameMemory returns the memory with the kind, the service and the words of a proposal. If there is none, the error is
// ErrNotFound.
func sameMemory(ctx context.Context, tx *sql.Tx, proposal escalation.MemoryProposal) (memoryRow, error) {
	rows, err := collect(ctx, tx, memoryFields, ofServiceQuery, escalation.ServiceKey(proposal.Service),
		string(proposal.Kind))
	if err != nil {
		return memoryRow{}, err
	}
	fingerprint := memory.Fingerprint(proposal.Text)
	at := slices.IndexFunc(rows, func(row memoryRow) bool { return memory.Fingerprint(row.Text) == fingerprint })
	if at < 0 {
		return memoryRow{}, ErrNotFound
	}
	return readSources(ctx, tx, rows[at])
}

// newMemory records a memory with its first source.
func newMemory(ctx context.Context, tx *sql.Tx, source memory.Source, p escalation.MemoryProposal) (memoryRow, error) {
	row := memoryRow{Memory: memory.Memory{
		Kind: p.Kind, Service: p.Service, Subject: p.Subject, Text: p.Text,
		CreatedAt: source.At,
	}}
	row.Settle()
	query, args := insertInto("memories", memoryFields(&row)[1:])
	if err := tx.QueryRowContext(ctx, query+" RETURNING id", args...).Scan(&row.row); err != nil {
		return row, err
	}
	return acted(ctx, tx, row, source)
}

// acted records an act on a memory, and returns the memory after it.
func acted(ctx context.Context, tx *sql.Tx, row memoryRow, source memory.Source) (memoryRow, error) {
	source.Text, source.At = row.Text, source.At.UTC().Truncate(time.Millisecond)
	row.Sources = append(row.Sources, source)
	row.Settle()
	query, args := insertInto("memory_sources", sourceFields(&sourceRow{source, row.row}))
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return row, err
	}
	fields := memoryFields(&row)[1:]
	query = fmt.Sprintf("UPDATE memories SET %s WHERE id = $%d", assignments(fields), len(fields)+1)
	_, err := tx.ExecContext(ctx, query, append(values(fields), row.row)...)
	return row, err
}

// MemoryAct names the person who acts on a memory, and the time.
type MemoryAct struct {
	Actor string
	At    time.Time
	// Seen is the revision that the person has read; 0 for the present one. If the memory has another one, the act
	// changes nothing.
	Seen int
}

// read returns the memory on which the person acts. If it has changed since the person has read it, the error is
// ErrConflict.
func (a MemoryAct) read(ctx context.Context, tx *sql.Tx, id string) (memoryRow, error) {
	row, err := oneMemory(ctx, tx, id)
	if err == nil && a.Seen != 0 && a.Seen != row.Revision {
		err = memoryConflict("%s%d has changed since you read it, and is at revision %d now: read it again",
			memoryPrefix, row.row, row.Revision)
	}
	return row, err
}

func (a MemoryAct) source(act memory.Act) memory.Source {
	return memory.Source{Act: act, Trust: memory.TrustPerson, At: a.At, Person: storable(a.Actor)}
}

// MemoryConflictError says why an act on a memory changed nothing. It wraps ErrConflict.
type MemoryConflictError struct{ Reason string }

func (e *MemoryConflictError) Error() string { return ErrConflict.Error() + ": " + e.Reason }

// Unwrap returns ErrConflict.
func (*MemoryConflictError) Unwrap() error { return ErrConflict }

func memoryConflict(reason string, args ...any) error {
	return &MemoryConflictError{fmt.Sprintf(reason, args...)}
}

// AddMemory records a memory of a person, which needs no confirmation. The caller must have checked it with
// memory.Check. If there is a candidate or a deleted memory with the same words, AddMemory confirms it, as the person
// has written it. If there is such a confirmed memory, AddMemory returns it with ErrConflict.
func (s *Store) AddMemory(
	ctx context.Context, proposal escalation.MemoryProposal, by MemoryAct,
) (memory.Memory, error) {
	return s.actOnMemory(ctx, "add a memory", by, func(tx *sql.Tx) (memoryRow, error) {
		row, err := sameMemory(ctx, tx, proposal)
		switch {
		case errors.Is(err, ErrNotFound):
			return newMemory(ctx, tx, by.source(memory.ActAdded), proposal)
		case err == nil && row.Status == memory.StatusConfirmed:
			return row, memoryConflict("%s%d says the same already", memoryPrefix, row.row)
		case err != nil:
			return row, err
		}
		row.Subject, row.Text = proposal.Subject, proposal.Text
		return acted(ctx, tx, row, by.source(memory.ActAdded))
	})
}

// ConfirmMemory records that a person vouches for a memory, whose content stays as it is. If a person has confirmed or
// deleted the memory already, ConfirmMemory returns it unchanged with ErrConflict.
func (s *Store) ConfirmMemory(ctx context.Context, id string, by MemoryAct) (memory.Memory, error) {
	return s.actOnMemory(ctx, "confirm "+strconv.Quote(id), by, func(tx *sql.Tx) (memoryRow, error) {
		row, err := by.read(ctx, tx, id)
		if err == nil && row.DecidedBy != "" {
			err = memoryConflict("%s has %s it already", row.DecidedBy, row.Status)
		}
		if err != nil {
			return row, err
		}
		return acted(ctx, tx, row, by.source(memory.ActConfirmed))
	})
}

// EditMemory gives a memory the content that a person has written, which confirms the memory. The caller must have
// checked it with memory.Check. If the memory is deleted, or another one has the same words, the error is ErrConflict.
func (s *Store) EditMemory(
	ctx context.Context, id string, content escalation.MemoryProposal, by MemoryAct,
) (memory.Memory, error) {
	return s.actOnMemory(ctx, "edit "+strconv.Quote(id), by, func(tx *sql.Tx) (memoryRow, error) {
		row, err := by.read(ctx, tx, id)
		if err == nil && row.Status == memory.StatusDeleted {
			err = memoryConflict("%s has deleted it", row.DecidedBy)
		}
		if err != nil {
			return row, err
		}
		switch other, err := sameMemory(ctx, tx, content); {
		case err == nil && other.row != row.row:
			return row, memoryConflict("%s%d says the same already, and is %s", memoryPrefix, other.row, other.Status)
		case err != nil && !errors.Is(err, ErrNotFound):
			return row, err
		}
		row.Kind, row.Service, row.Subject, row.Text = content.Kind, content.Service, content.Subject, content.Text
		return acted(ctx, tx, row, by.source(memory.ActEdited))
	})
}

// DeleteMemory takes a memory out of all prompts. It stays in the records for a while, so that a proposal with the same
// words does not bring it back. If the memory is deleted already, DeleteMemory returns it unchanged with ErrConflict.
func (s *Store) DeleteMemory(ctx context.Context, id string, by MemoryAct) (memory.Memory, error) {
	return s.actOnMemory(ctx, "delete "+strconv.Quote(id), by, func(tx *sql.Tx) (memoryRow, error) {
		row, err := by.read(ctx, tx, id)
		if err == nil && row.Status == memory.StatusDeleted {
			err = memoryConflict("%s has deleted it already", row.DecidedBy)
		}
		if err != nil {
			return row, err
		}
		return acted(ctx, tx, row, by.source(memory.ActDeleted))
	})
}

// actOnMemory runs fn in a write transaction, and returns the memory of fn. If by lacks an actor or a time, the error
// is ErrInvalid.
func (s *Store) actOnMemory(
	ctx context.Context, what string, by MemoryAct, fn func(tx *sql.Tx) (memoryRow, error),
) (found memory.Memory, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if by.Actor == "" || by.At.IsZero() {
			return fmt.Errorf("%w: nobody, or no time, is given", ErrInvalid)
		}
		row, err := fn(tx)
		if row.row != 0 {
			found = row.complete()
		}
		return err
	})
	if err != nil {
		return found, fmt.Errorf("%s: %w", what, err)
	}
	return found, nil
}
