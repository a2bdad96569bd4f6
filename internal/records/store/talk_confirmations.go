package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
)

// confirmationFields lists the columns of the table talk_confirmations that describe a confirmation.
func confirmationFields(c *escalation.Confirmation) []field {
	return []field{
		{"proposal", &c.Proposal}, {"actor", &c.Actor}, {"confirmed_at", millis{&c.At}}, {"result", &c.Result},
	}
}

var confirmationsQuery = "SELECT " + columns(confirmationFields(new(escalation.Confirmation))) +
	" FROM talk_confirmations" + ofTurn + " ORDER BY proposal"

// confirmations returns the proposals of a turn that people have confirmed.
func confirmations(ctx context.Context, q querier, conversationID string, turn int) ([]escalation.Confirmation, error) {
	return collect(ctx, q, confirmationFields, confirmationsQuery, conversationID, turn)
}

// ConfirmProposal records that a person confirms a proposal of a turn. If somebody has confirmed it before, the error
// is ErrConflict, and nothing changes.
func (s *Store) ConfirmProposal(
	ctx context.Context, conversationID string, turn int, confirmation escalation.Confirmation,
) error {
	confirmation.Actor, confirmation.Result = storable(confirmation.Actor), storable(confirmation.Result)
	query, args := insertInto("talk_confirmations", append(confirmationFields(&confirmation),
		field{"conversation_id", &conversationID}, field{"turn", &turn}))
	err := s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, query+" ON CONFLICT (conversation_id, turn, proposal) DO NOTHING", args...)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err == nil && rows == 0 {
			err = fmt.Errorf("%w: it was confirmed before", ErrConflict)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("confirm proposal %d of turn %d of %q: %w", confirmation.Proposal, turn, conversationID, err)
	}
	return nil
}

const (
	settleConfirmationQuery = `
UPDATE talk_confirmations SET result = $1 WHERE conversation_id = $2 AND turn = $3 AND proposal = $4`
	withdrawConfirmationQuery = "DELETE FROM talk_confirmations" + ofTurn + " AND proposal = $3"
)

// SettleConfirmation records what became of a confirmed proposal. If the result is empty, because nothing was done, it
// removes the confirmation.
func (s *Store) SettleConfirmation(
	ctx context.Context, conversationID string, turn, proposal int, result string,
) error {
	query, args := settleConfirmationQuery, []any{storable(result), conversationID, turn, proposal}
	if result == "" {
		query, args = withdrawConfirmationQuery, args[1:]
	}
	err := s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("record what became of proposal %d of turn %d of %q: %w", proposal, turn, conversationID, err)
	}
	return nil
}
