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

// tables lists all tables with records. If rows of one table refer to rows of another table, the other table comes
// first.
var tables = []string{
	"sessions", "replaced_reports", "removed_costs", "events", "ledger", "service_locks", "namespaces", "clock",
	"incidents", "incident_chains", "notifications", "calls", "duties", "memories", "memory_sources", "memory_uses",
	"talk_turns", "talk_confirmations", "alerts", "alert_chains",
}

// TableRows is the number of rows of a table.
type TableRows struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// CopyResult describes what Copy has copied.
type CopyResult struct {
	Tables []TableRows `json:"tables"`
	// CostUSD is the cost of all recorded sessions, in US dollars.
	CostUSD float64 `json:"cost_usd"`
}

// copyBatch is the number of rows in one INSERT statement of Copy. SQLite allows 32,766 values in a statement, and
// every table has fewer than 100 columns.
const copyBatch = 200

// Copy copies all records to another database. The records keep their numbers. Copy then reads the copied records and
// compares them with the source. It writes all records in one transaction, so the target stays empty if Copy fails.
// Other writers of both databases wait until Copy ends.
//
// The error is ErrConflict if the target contains records. It is also ErrConflict if a worker of the source has
// reported in the two minutes before now, because that worker could write records after the copy.
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

// refuseRecords returns an error if a table contains rows.
func refuseRecords(ctx context.Context, tx *sql.Tx) error {
	for _, table := range tables {
		rows, err := countRows(ctx, tx, table)
		if err == nil && rows > 0 {
			err = fmt.Errorf("%w: the target has %d rows in table %s: choose an empty database", ErrConflict, rows,
				table)
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

// copyTable copies a table, compares the rows in both databases, and returns the number of rows.
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
	defer func() { _ = rows.Close() }() // rows.Err reports errors
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

// rowDigest computes a hash of rows. The hash does not depend on the types that a driver uses for the values.
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

// keepNumbers makes a table in the target continue with the same next row number as in the source. So the target
// never uses a number again, even if the source has deleted the row with this number.
func keepNumbers(ctx context.Context, from, to copyEnd, table string) error {
	var latest int64
	err := from.tx.QueryRowContext(ctx, fmt.Sprintf(from.dialect.latestNumber, table)).Scan(&latest)
	if errors.Is(err, sql.ErrNoRows) || err == nil && latest == 0 {
		return nil // the table has no row numbers, or never had a row
	}
	if err != nil {
		return err
	}
	return to.continueAfter(ctx, table, latest)
}

// continueAfter makes a table give numbers above latest to new rows.
func (e copyEnd) continueAfter(ctx context.Context, table string, latest int64) error {
	for _, statement := range e.dialect.continueNumbers {
		if _, err := e.tx.ExecContext(ctx, fmt.Sprintf(statement, table, latest)); err != nil {
			return err
		}
	}
	return nil
}
