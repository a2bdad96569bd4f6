package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
)

// Charge adds the actions of a tool call to the ledger before the call runs, if the cooldowns allow all of these
// actions. If the cooldowns forbid an action, Charge adds none and returns the refusal. All of this is one transaction.
// So no limit is exceeded, even if several chains and hosts charge calls at the same time.
//
// A call is charged only once. If an operator has overridden the cooldowns for the session (see
// escalation.Session.Forced), Charge adds the actions and never refuses. A charge remains even if the session never
// reports. Only ReturnCharge, TakeBack and RemoveChain remove it.
//
// The error is ErrNotFound if charge.SessionID is unknown. It is ErrConflict if that session does not belong to
// charge.ChainID. It is ErrInvalid if charge.Call or charge.At is empty, if the name of a service is invalid, or if an
// action is of a kind without a cooldown.
func (s *Store) Charge(ctx context.Context, charge escalation.Charge) (refusal *escalation.ChargeRefusal, err error) {
	defer s.count(OpCharge, &err)
	charge.Actions = s.hooks.actions(charge.Actions)
	if charge, err = canonical(charge); err == nil {
		for i := range charge.Actions {
			charge.Actions[i].Service = strings.TrimSpace(charge.Actions[i].Service)
		}
		err = checkCharge(charge)
	}
	if err == nil {
		err = s.recovering(ctx, func() error {
			return s.write(ctx, func(tx *sql.Tx) (err error) {
				refusal, err = chargeOnce(ctx, tx, charge)
				return err
			})
		}, charge.ChainID)
	}
	if err != nil {
		return nil, fmt.Errorf("charge call %q of session %q: %w", charge.Call, charge.SessionID, err)
	}
	return refusal, nil
}

const returnQuery = "DELETE FROM ledger WHERE session_id = $1 AND call_id = $2"

// ReturnCharge removes the charge of a call from the ledger. Use it for a call that never ran. If the call has no
// charge, ReturnCharge does nothing.
func (s *Store) ReturnCharge(ctx context.Context, sessionID, call string) (err error) {
	defer s.count(OpCharge, &err)
	if call == "" { // ledger entries from verdicts have an empty call, and must stay
		return fmt.Errorf("return the charge of a call of session %q: %w: it has no id", sessionID, ErrInvalid)
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, returnQuery, sessionID, call)
		return err
	})
	if err != nil {
		return fmt.Errorf("return the charge of call %q of session %q: %w", call, sessionID, err)
	}
	return nil
}

// takeBackQuery removes the entry that actionsOfQuery lists first.
const takeBackQuery = "DELETE FROM ledger WHERE id = (SELECT id FROM ledger WHERE service_key = $1 " +
	"ORDER BY at DESC, id DESC LIMIT 1)"

// TakeBack removes the latest restart or redeployment of a service from the ledger, because it reached nothing, so that
// no limit counts it. An event of its chain says who has taken it back. The error is ErrNotFound if the ledger has none
// of the service, and ErrConflict if its session has not ended: the verdict may name the action again.
func (s *Store) TakeBack(
	ctx context.Context, service, actor string, now time.Time,
) (taken ServiceAction, err error) {
	defer s.count(OpCharge, &err)
	err = s.write(ctx, func(tx *sql.Tx) error {
		latest, err := collect(ctx, tx, serviceActionFields, actionsOfQuery, escalation.ServiceKey(service), 1)
		if err == nil && len(latest) == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		taken = latest[0]
		session, err := bySessionID(ctx, tx, taken.SessionID)
		if err != nil {
			return err
		}
		if session.EndedAt.IsZero() {
			return fmt.Errorf("%w: session #%d, which did it, has not ended", ErrConflict, session.ID)
		}
		if _, err := tx.ExecContext(ctx, takeBackQuery, escalation.ServiceKey(service)); err != nil {
			return err
		}
		return appendEvents(ctx, tx, s.hooks.events([]escalation.Event{{
			Key: fmt.Sprintf("%s/taken-back/%d", taken.SessionID, now.UnixNano()), ChainID: taken.ChainID,
			FirstRunID: session.FirstRunID, SessionID: taken.SessionID, Kind: escalation.EventSignal,
			Severity: escalation.SeverityInfo, At: now,
			Message: fmt.Sprintf("%s has taken back the %s of %s at %s: no limit counts it", actor, taken.Kind,
				taken.Service, taken.At.UTC().Format("2006-01-02 15:04 UTC")),
		}}))
	})
	if err != nil {
		return ServiceAction{}, fmt.Errorf("take back the latest repair of %q: %w", service, err)
	}
	return taken, nil
}

func checkCharge(charge escalation.Charge) error {
	switch {
	case charge.Call == "":
		return fmt.Errorf("%w: it has no id", ErrInvalid)
	case charge.At.IsZero():
		return fmt.Errorf("%w: it has no time", ErrInvalid)
	}
	for _, action := range charge.Actions {
		if !action.Kind.HasCooldown() {
			return fmt.Errorf("%w: a %q has no cooldown", ErrInvalid, action.Kind)
		}
	}
	if err := escalation.CheckServices(servicesOf(charge.Actions)); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// servicesOf returns the service of each action.
func servicesOf(actions []escalation.CallAction) []string {
	services := make([]string, len(actions))
	for i, action := range actions {
		services[i] = action.Service
	}
	return services
}

func chargeOnce(ctx context.Context, tx *sql.Tx, charge escalation.Charge) (*escalation.ChargeRefusal, error) {
	session, err := bySessionID(ctx, tx, charge.SessionID)
	if err == nil && session.ChainID != charge.ChainID {
		err = fmt.Errorf("%w: the session belongs to chain %q", ErrConflict, session.ChainID)
	}
	if err != nil {
		return nil, err
	}
	own, err := actionsOf(ctx, tx, session)
	if err != nil || own.charged(charge.Call) {
		return nil, err
	}
	if !session.Forced {
		recent, err := ledger(ctx, tx, charge.At.Add(-charge.Cooldowns.Window()))
		if err != nil {
			return nil, fmt.Errorf("read the ledger: %w", err)
		}
		if refusal := charge.Cooldowns.Refuse(recent, charge.Actions, charge.At); refusal != nil {
			return refusal, nil
		}
	}
	for _, action := range charge.Actions {
		entry := escalation.LedgerEntry{Service: action.Service, Kind: action.Kind, At: charge.At, Call: charge.Call}
		if err := own.enter(ctx, entry); err != nil {
			return nil, err
		}
	}
	return nil, nil //nolint:nilnil // no refusal is an answer
}
