package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Limits on the texts of a decision, in bytes. Agents write these texts, so the texts can have any length.
const (
	maxCallInput  = 16 << 10
	maxCallReason = 4 << 10
	maxCallName   = 500 // the name of a tool or a service
)

// maxCallsRead limits the decisions on calls that are read at once.
const maxCallsRead = 5_000

// callsQuery selects the latest calls of a chain.
var callsQuery = "SELECT " + columns(callFields(new(escalation.CallDecision))) + " FROM calls" + ofChain +
	" ORDER BY id DESC LIMIT " +
	strconv.Itoa(maxCallsRead)

// callsOfQuery selects the calls of a number of sessions.
func callsOfQuery(sessions int) string {
	return "SELECT " + columns(callFields(new(escalation.CallDecision))) + " FROM calls WHERE session_id IN (" +
		placeholders(1, sessions) +
		") ORDER BY id LIMIT " + strconv.Itoa(maxCallsRead)
}

// AppendDecisions records decisions on tool calls, in the given order. If it fails, it records none of them. If a
// decision on a call is already recorded, the recorded decision stays unchanged.
//
// Long texts are cut: inputs at 16 KiB, rules and reasons at 4 KiB, names at 500 bytes. A text that was cut ends with a
// note of the original length. At most 100 actions of a call are kept. The error is ErrInvalid if a decision has no
// ChainID, SessionID, Call, Tool or At.
func (s *Store) AppendDecisions(ctx context.Context, decisions []escalation.CallDecision) (err error) {
	defer s.count(OpDecisions, &err)
	decisions, err = canonical(s.hooks.decisions(decisions))
	if err == nil && len(decisions) > 0 {
		err = s.write(ctx, func(tx *sql.Tx) error { return appendDecisions(ctx, tx, decisions) })
	}
	if err != nil {
		return fmt.Errorf("record decisions on calls: %w", err) // the caller tries again
	}
	for i := range decisions {
		if !decisions[i].Allowed && s.hooks.Refused != nil {
			s.hooks.Refused(decisions[i])
		}
	}
	return nil
}

// Decisions returns the decisions on the calls of a chain, in the order in which they were recorded, the latest 5,000
// at most. If there are none, or if the chain is unknown, the list is empty.
func (s *Store) Decisions(ctx context.Context, chainID string) ([]escalation.CallDecision, error) {
	decisions, err := collect(ctx, s.db, callFields, callsQuery, chainID)
	if err != nil {
		return nil, fmt.Errorf("read the decisions on the calls of chain %q: %w", chainID, err)
	}
	slices.Reverse(decisions)
	return decisions, nil
}

// DecisionsOf returns the decisions on the calls of sessions in the order in which they were recorded, the first 5,000
// at most.
func (s *Store) DecisionsOf(ctx context.Context, sessionIDs []string) ([]escalation.CallDecision, error) {
	if len(sessionIDs) == 0 {
		return []escalation.CallDecision{}, nil
	}
	args := make([]any, len(sessionIDs))
	for i, id := range sessionIDs {
		args[i] = id
	}
	decisions, err := collect(ctx, s.db, callFields, callsOfQuery(len(args)), args...)
	if err != nil {
		return nil, fmt.Errorf("read the decisions on the calls of %d sessions: %w", len(args), err)
	}
	return decisions, nil
}

// deniedQuery selects the denied calls since $1, of all chains that share these records. The latest come first.
var deniedQuery = "SELECT " + columns(callFields(new(escalation.CallDecision))) + ` FROM calls
WHERE NOT allowed AND decided_at >= $1 ORDER BY id DESC LIMIT $2`

// Denied returns the calls that were denied since a time, the latest first, at most limit.
func (s *Store) Denied(ctx context.Context, since time.Time, limit int) ([]escalation.CallDecision, error) {
	decisions, err := collect(ctx, s.db, callFields, deniedQuery, since.UnixMilli(), limit)
	if err != nil {
		return nil, fmt.Errorf("read the denied calls: %w", err)
	}
	return decisions, nil
}

func appendDecisions(ctx context.Context, tx *sql.Tx, decisions []escalation.CallDecision) error {
	for i := range decisions {
		if err := checkDecision(decisions[i]); err != nil {
			return fmt.Errorf("decision %d of %d: %w", i+1, len(decisions), err)
		}
		bounded := bound(decisions[i])
		query, args := insertInto("calls", callFields(&bounded))
		if _, err := tx.ExecContext(ctx, query+" ON CONFLICT (session_id, call_id) DO NOTHING", args...); err != nil {
			return fmt.Errorf("call %q: %w", bounded.Call, err)
		}
	}
	return nil
}

func checkDecision(decision escalation.CallDecision) error {
	for _, required := range []struct{ name, value string }{
		{"chain id", decision.ChainID},
		{"session id", decision.SessionID},
		{"call id", decision.Call},
		{"tool", decision.Tool},
	} {
		if required.value == "" {
			return fmt.Errorf("%w: it has no %s", ErrInvalid, required.name)
		}
	}
	if decision.At.IsZero() {
		return fmt.Errorf("%w: it has no time", ErrInvalid)
	}
	return nil
}

// bound returns decision with its texts and its list of actions cut to the limits.
func bound(decision escalation.CallDecision) escalation.CallDecision {
	decision.Tool = cut(decision.Tool, maxCallName)
	decision.Input = cut(decision.Input, maxCallInput)
	decision.Rule = cut(decision.Rule, maxCallReason)
	decision.Reason = cut(decision.Reason, maxCallReason)
	decision.Actions = decision.Actions[:min(len(decision.Actions), escalation.MaxServices)]
	for i := range decision.Actions {
		decision.Actions[i].Service = cut(decision.Actions[i].Service, maxCallName)
	}
	return decision
}

// cut returns text if it has at most limit bytes. If text is longer, cut returns the beginning of text, with a note of
// the original length. It never splits a UTF-8 character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… [cut: %d bytes]", text[:end], len(text))
}
