package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// SeenNamespace is a namespace with the time of the latest report by a worker of that namespace.
type SeenNamespace struct {
	Namespace

	SeenAt time.Time
}

// namespaceFields lists the columns of the table namespaces.
func namespaceFields(n *SeenNamespace) []field {
	return []field{{"id", &n.ID}, {"name", &n.Name}, {"seen_at", millis{&n.SeenAt}}}
}

var namespacesQuery = "SELECT " + columns(namespaceFields(new(SeenNamespace))) + " FROM namespaces ORDER BY id"

// ReportAlive records that a worker of the Store's namespace runs now. It returns all namespaces whose workers have
// used the database.
func (s *Store) ReportAlive(ctx context.Context, now time.Time) (seen []SeenNamespace, err error) {
	query, args := insertInto("namespaces", namespaceFields(&SeenNamespace{s.namespace, now}))
	err = s.write(ctx, func(tx *sql.Tx) (err error) {
		if _, err := tx.ExecContext(ctx, query+" ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at", args...); err != nil {
			return err
		}
		seen, err = collect(ctx, tx, namespaceFields, namespacesQuery)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("record that a worker of namespace %q runs: %w", s.namespace.Name, err)
	}
	return seen, nil
}
