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

	// Host is the name of that worker's host.
	Host string
	// SeenAt is a time of that worker's clock.
	SeenAt time.Time
}

// namespaceFields lists the columns of the table namespaces.
func namespaceFields(n *SeenNamespace) []field {
	return []field{{"id", &n.ID}, {"name", &n.Name}, {"host", &n.Host}, {"seen_at", millis{&n.SeenAt}}}
}

// Absence is a namespace of which no worker has reported during the latest sweeps of another namespace.
type Absence struct {
	NamespaceID string
	// Host is the host from which a worker of the namespace has reported last.
	Host string
	// Sweeps counts the sweeps of the other namespace since the latest report.
	Sweeps int
}

func absenceFields(a *Absence) []field {
	return []field{{"namespace_id", &a.NamespaceID}, {"host", &a.Host}, {"sweeps", &a.Sweeps}}
}

var namespacesQuery = "SELECT " + columns(namespaceFields(new(SeenNamespace))) + " FROM namespaces ORDER BY id"

var (
	presentQuery = "DELETE FROM absences WHERE namespace_id = $1"
	absentQuery  = `
INSERT INTO absences (namespace_id, observer_id, sweeps) SELECT id, $1, 1 FROM namespaces WHERE id <> $1
ON CONFLICT (namespace_id, observer_id) DO UPDATE SET sweeps = absences.sweeps + 1`
	absencesQuery = "SELECT " + columns(absenceFields(new(Absence))) +
		" FROM absences JOIN namespaces ON namespaces.id = absences.namespace_id WHERE observer_id = $1 ORDER BY namespace_id"
)

// ReportAlive records that a worker of the Store's namespace runs now, on the given host, and sweeps. It returns the other
// namespaces, each with the number of sweeps of this namespace, including this one, since a worker of the other namespace has
// reported.
//
// The absence of a namespace is counted, and no times are compared. So an outage of the database during which no worker
// could report, or a wrong clock does not make a namespace absent.
func (s *Store) ReportAlive(ctx context.Context, host string, now time.Time) (absences []Absence, err error) {
	query, args := insertInto("namespaces", namespaceFields(&SeenNamespace{s.namespace, host, now}))
	err = s.write(ctx, func(tx *sql.Tx) (err error) {
		_, err = tx.ExecContext(ctx, query+" ON CONFLICT (id) DO UPDATE SET host = excluded.host, seen_at = excluded.seen_at", args...)
		for _, update := range []string{presentQuery, absentQuery} {
			if err == nil {
				_, err = tx.ExecContext(ctx, update, s.namespace.ID)
			}
		}
		if err == nil {
			absences, err = collect(ctx, tx, absenceFields, absencesQuery, s.namespace.ID)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("record that a worker of namespace %q runs: %w", s.namespace.Name, err)
	}
	return absences, nil
}
