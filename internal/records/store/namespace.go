package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Namespace identifies the Temporal namespace to which a database of records belongs.
type Namespace struct {
	// ID is Temporal's ID of the namespace, a UUID. Two clusters never use the same ID, even if their namespaces have
	// the same name.
	ID   string
	Name string
}

// String returns the name and the ID.
func (n Namespace) String() string { return fmt.Sprintf("%q (%s)", n.Name, n.ID) }

// ownerRow is the row of the table namespaces. A database that workers of several namespaces have shared has several
// rows.
type ownerRow struct {
	Namespace

	// seenAt is the time at which a worker of the namespace has called Claim last.
	seenAt time.Time
}

func ownerFields(o *ownerRow) []field {
	return []field{{"id", &o.ID}, {"name", &o.Name}, {"seen_at", millis{&o.seenAt}}}
}

// inUseWithin is the maximum age of a worker's call of Claim that shows that the database is in use. Workers call Claim
// once a minute.
const inUseWithin = 2 * time.Minute

var (
	ownersQuery = "SELECT " + columns(ownerFields(new(ownerRow))) + " FROM namespaces ORDER BY name, id"
	// ownQuery leaves the name as it is: Claim compares only the ID.
	ownQuery = " ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at"
)

// Claim records that the database belongs to a namespace, of which a worker runs now. A worker calls it before it reads
// or records anything, and once a minute. If the database belongs to another namespace, or to several, Claim changes
// nothing, and the error is ErrForeign.
func (s *Store) Claim(ctx context.Context, own Namespace, now time.Time) (err error) {
	defer s.count(OpSweep, &err)
	if now, err = s.at(ctx, now); err != nil {
		return err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		if err := s.checkOwner(ctx, tx, own); err != nil {
			return err
		}
		query, args := insertInto("namespaces", ownerFields(&ownerRow{own, now}))
		_, err := tx.ExecContext(ctx, query+ownQuery, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("take the records for namespace %s: %w", own, err)
	}
	return nil
}

// CheckNamespace returns ErrForeign if the database belongs to another namespace, or to several. A database that no
// worker has claimed belongs to none.
func (s *Store) CheckNamespace(ctx context.Context, own Namespace) error {
	return s.checkOwner(ctx, s.db, own)
}

func (s *Store) checkOwner(ctx context.Context, q querier, own Namespace) error {
	owners, err := collect(ctx, q, ownerFields, ownersQuery)
	switch {
	case err != nil:
		return err
	case len(owners) == 0 || len(owners) == 1 && owners[0].ID == own.ID:
		return nil
	case len(owners) == 1:
		return fmt.Errorf("%w: %s has those of namespace %s: give namespace %s a database of its own "+
			"(CLAUDEOPS_STATE_DIR or "+
			"CLAUDEOPS_DATABASE_URL), or, if the other one is gone for good, hand the records over with `claudeops "+
			"db release`",
			ErrForeign, s.place, owners[0], own)
	}
	names := make([]string, len(owners))
	for i, owner := range owners {
		names[i] = owner.String()
	}
	return fmt.Errorf("%w: workers of several have shared %s, %s: stop them all, run `claudeops db release`, start a "+
		"worker of the one "+
		"that is to keep the records, and give each other one a database of its own (CLAUDEOPS_STATE_DIR or "+
		"CLAUDEOPS_DATABASE_URL)",
		ErrForeign, s.place, strings.Join(names, " and "))
}

// Release makes the database belong to no namespace, so that the next worker takes it with Claim. The sweeps of that
// worker close what the chains of the former namespace have left open. If a worker has claimed the database in the two
// minutes before now, the error is ErrConflict.
func (s *Store) Release(ctx context.Context, now time.Time) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		if err := refuseInUse(ctx, tx, now); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM namespaces")
		return err
	})
	if err != nil {
		return fmt.Errorf("release the records from their namespace: %w", err)
	}
	return nil
}

// refuseInUse returns an error if a worker has claimed the database within inUseWithin.
func refuseInUse(ctx context.Context, tx *sql.Tx, now time.Time) error {
	owners, err := collect(ctx, tx, ownerFields, ownersQuery)
	for _, owner := range owners {
		if now.Sub(owner.seenAt) < inUseWithin {
			return fmt.Errorf("%w: a worker of namespace %s has used the records within the last two minutes: "+
				"stop all workers, and wait that long", ErrConflict, owner.Name)
		}
	}
	return err
}
