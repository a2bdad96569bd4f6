package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"hash"
	"math"
	"strings"
	"time"
)

// tables lists all tables with records. A table comes after those that its rows refer to.
var tables = []string{
	"sessions", "replaced_reports", "events", "ledger", "service_locks", "namespaces", "incidents", "incident_chains",
	"notifications", "calls", "duties",
}

// TableRows is the number of rows of a table.
type TableRows struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// CopyResult describes what Copy has copied.
type CopyResult struct {
	Tables []TableRows `json:"tables"`
	// CostUSD is the cost of all sessions, in US dollars.
	CostUSD float64 `json:"cost_usd"`
}

// inUseWithin is the time after which a database without a report of a worker is not in use. Workers report once a minute.
const inUseWithin = 2 * time.Minute

// copyBatch is the number of rows that Copy inserts by one statement. SQLite allows 32,766 values, and no table has 100 columns.
const copyBatch = 200

// Copy copies all records to another database, with their numbers. It reads them back and compares them. All of it is one
// transaction: after an error the target is as empty as before. Other writers of both databases wait meanwhile.
//
// A target with records is ErrConflict. So is a source whose workers have reported in the two minutes before now, because what
// they recorded after the copy would be lost.
func (s *Store) Copy(ctx context.Context, target *Store, now time.Time) (result CopyResult, err error) {
	err = s.write(ctx, func(from *sql.Tx) error {
		if err := refuseInUse(ctx, from, now); err != nil {
			return err
		}
		return target.write(ctx, func(to *sql.Tx) error {
			if err := refuseRecords(ctx, to); err != nil {
				return err
			}
			for _, table := range tables {
				rows, err := copyTable(ctx, from, to, table)
				if err == nil {
					err = keepNumbers(ctx, copyEnd{from, s.dialect}, copyEnd{to, target.dialect}, table)
				}
				if err != nil {
					return fmt.Errorf("table %s: %w", table, err)
				}
				result.Tables = append(result.Tables, TableRows{table, rows})
			}
			return to.QueryRowContext(ctx, "SELECT COALESCE(SUM(cost_usd), 0) FROM sessions").Scan(&result.CostUSD)
		})
	})
	if err != nil {
		return CopyResult{}, fmt.Errorf("copy the records: %w", err)
	}
	return result, nil
}

// refuseInUse fails if a worker has used the database lately.
func refuseInUse(ctx context.Context, tx *sql.Tx, now time.Time) error {
	seen, err := collect(ctx, tx, namespaceFields, namespacesQuery)
	for _, namespace := range seen {
		if now.Sub(namespace.SeenAt) < inUseWithin {
			return fmt.Errorf("%w: a worker of namespace %s has used the source within the last two minutes: "+
				"stop all workers, and wait that long", ErrConflict, namespace.Name)
		}
	}
	return err
}

// refuseRecords fails if there are records.
func refuseRecords(ctx context.Context, tx *sql.Tx) error {
	for _, table := range tables {
		rows, err := countRows(ctx, tx, table)
		if err == nil && rows > 0 {
			err = fmt.Errorf("%w: the target has %d rows in table %s: choose an empty database", ErrConflict, rows, table)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func countRows(ctx context.Context, q querier, table string) (rows int64, err error) {
	err = q.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&rows)
	return rows, err
}

// copyTable copies a table, and compares the rows of both databases. It returns their number.
func copyTable(ctx context.Context, from, to *sql.Tx, table string) (int64, error) {
	read := newRowDigest()
	var columns []string
	var batch []any
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		groups := make([]string, 0, copyBatch)
		for first := 1; first <= len(batch); first += len(columns) {
			groups = append(groups, "("+placeholders(first, len(columns))+")")
		}
		names, rows := strings.Join(columns, ", "), strings.Join(groups, ", ")
		query := fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", table, names, rows) //nolint:gosec // our own names
		_, err := to.ExecContext(ctx, query, batch...)
		batch = batch[:0]
		return err
	}
	err := eachRow(ctx, from, table, func(names []string, values []any) error {
		columns = names
		for i, value := range values {
			if text, ok := value.(string); ok {
				values[i] = storable(text)
			}
		}
		read.add(values)
		if batch = append(batch, values...); len(batch) == copyBatch*len(columns) {
			return flush()
		}
		return nil
	})
	if err := errors.Join(err, flush()); err != nil {
		return 0, err
	}
	written := newRowDigest()
	err = eachRow(ctx, to, table, func(_ []string, values []any) error {
		written.add(values)
		return nil
	})
	if err == nil && !written.equal(read) {
		err = fmt.Errorf("%w: the copied rows differ from the %d rows of the source", ErrConflict, read.rows)
	}
	return read.rows, err
}

// eachRow calls fn with the columns and the values of each row, sorted by the first column.
func eachRow(ctx context.Context, tx *sql.Tx, table string, fn func(columns []string, values []any) error) error {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+table+" ORDER BY 1") //nolint:gosec // one of our tables
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports an error of the reading
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if err := fn(columns, values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// rowDigest identifies the values of rows, however a driver represents them.
type rowDigest struct {
	hash hash.Hash
	rows int64
}

func newRowDigest() *rowDigest { return &rowDigest{hash: sha256.New()} }

func (d *rowDigest) add(values []any) {
	d.rows++
	for _, value := range values {
		switch typed := value.(type) {
		case bool:
			value = int64(0)
			if typed {
				value = int64(1)
			}
		case float64:
			value = math.Float64bits(typed)
		}
		_, _ = fmt.Fprintf(d.hash, "%T %q\n", value, fmt.Sprint(value)) // a hash never fails
	}
}

func (d *rowDigest) equal(other *rowDigest) bool {
	return d.rows == other.rows && bytes.Equal(d.hash.Sum(nil), other.hash.Sum(nil))
}

// copyEnd is one of the two databases of a copy.
type copyEnd struct {
	tx      *sql.Tx
	dialect dialect
}

// keepNumbers makes the target continue the numbers of a table's rows where the source would. So no number is given out
// twice, even if the rows with the latest numbers are gone.
func keepNumbers(ctx context.Context, from, to copyEnd, table string) error {
	var latest int64
	err := from.tx.QueryRowContext(ctx, fmt.Sprintf(from.dialect.latestNumber, table)).Scan(&latest)
	if errors.Is(err, sql.ErrNoRows) || err == nil && latest == 0 {
		return nil // there are no numbers, or none was given out
	}
	if err != nil {
		return err
	}
	for _, statement := range to.dialect.continueNumbers {
		if _, err := to.tx.ExecContext(ctx, fmt.Sprintf(statement, table, latest)); err != nil {
			return err
		}
	}
	return nil
}
