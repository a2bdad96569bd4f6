package store

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/calendar"
)

// adapter converts a value between Go and the database.
type adapter interface {
	sql.Scanner
	driver.Valuer
}

var (
	_ adapter = nullableInt{}
	_ adapter = millis{}
	_ adapter = jsonText[escalation.Report]{}
	_ adapter = services{}
	_ adapter = conclusion{}
	_ adapter = dayNumber{}
	_ adapter = serviceKey{}
	_ adapter = derived(nil)
)

// nullableInt stores 0 as NULL, because a column with a foreign key must be NULL if it refers to no row.
type nullableInt struct{ to *int64 }

// Scan implements sql.Scanner.
func (n nullableInt) Scan(src any) error {
	var v sql.NullInt64
	if err := v.Scan(src); err != nil {
		return err
	}
	*n.to = v.Int64
	return nil
}

// Value implements driver.Valuer.
func (n nullableInt) Value() (driver.Value, error) {
	return sql.NullInt64{Int64: *n.to, Valid: *n.to != 0}.Value()
}

// millis stores a time as milliseconds since the Unix epoch, and the zero time as NULL.
type millis struct{ to *time.Time }

// Scan implements sql.Scanner. The time is in UTC.
func (m millis) Scan(src any) error {
	var v sql.NullInt64
	if err := v.Scan(src); err != nil {
		return err
	}
	*m.to = time.Time{}
	if v.Valid {
		*m.to = time.UnixMilli(v.Int64).UTC()
	}
	return nil
}

// Value implements driver.Valuer.
func (m millis) Value() (driver.Value, error) {
	return sql.NullInt64{Int64: m.to.UnixMilli(), Valid: !m.to.IsZero()}.Value()
}

// jsonText stores a value as JSON. It stores JSON's null as NULL.
type jsonText[T any] struct{ to *T }

// Scan implements sql.Scanner.
func (j jsonText[T]) Scan(src any) error {
	var text sql.NullString
	if err := text.Scan(src); err != nil {
		return err
	}
	var v T
	if text.Valid {
		if err := json.Unmarshal([]byte(text.String), &v); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	*j.to = v
	return nil
}

// Value implements driver.Valuer.
func (j jsonText[T]) Value() (driver.Value, error) {
	text, err := json.Marshal(*j.to)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return sql.NullString{String: string(text), Valid: string(text) != "null"}.Value()
}

// services stores a copy of the services in a verdict, as a JSON list in a column of its own, so that SQL can group by
// services. Go code reads the services from the verdict, never from this column. Of a long list, the column has only
// the services that fit into maxServicesColumn bytes.
type services struct{ of *escalation.Report }

// maxServicesColumn limits the column services in bytes. The column is part of an index, and PostgreSQL allows 2,704
// bytes for an entry of an index.
const maxServicesColumn = 1_500

// Scan implements sql.Scanner. It ignores the column, because Go reads the services from the verdict.
func (services) Scan(any) error { return nil }

// Value implements driver.Valuer.
func (s services) Value() (driver.Value, error) {
	list := []string{}
	if s.of.Verdict != nil && s.of.Verdict.Services != nil {
		list = s.of.Verdict.Services
	}
	for {
		value, err := jsonText[[]string]{&list}.Value()
		if text, ok := value.(string); !ok || len(text) <= maxServicesColumn || err != nil {
			return value, err
		}
		list = list[:len(list)-1]
	}
}

// conclusion stores a copy of the status in a verdict in a column of its own, so that SQL can group by it. Go code
// reads the status from the verdict, never from this column.
type conclusion struct{ of *escalation.Report }

// Scan implements sql.Scanner. It ignores the column, because Go reads the status from the verdict.
func (conclusion) Scan(any) error { return nil }

// Value implements driver.Valuer.
func (c conclusion) Value() (driver.Value, error) {
	if c.of.Verdict == nil {
		return "", nil
	}
	return string(c.of.Verdict.Status), nil
}

// dayNumber stores the day (UTC) of a time in a column of its own, so that an index can group by it. Go code never
// reads this column.
type dayNumber struct{ of *time.Time }

// Scan implements sql.Scanner. It ignores the column, because Go computes the day from the time.
func (dayNumber) Scan(any) error { return nil }

// Value implements driver.Valuer.
func (d dayNumber) Value() (driver.Value, error) { return dayOf(*d.of), nil }

// dayOf returns the number of days (UTC) from the Unix epoch to t.
func dayOf(t time.Time) int64 { return int64(calendar.Of(t.UTC())) }

// serviceKey stores the key of a service's name (see escalation.ServiceKey) in a column of its own, so that SQL can
// compare names. Go code never reads this column.
type serviceKey struct{ of *string }

// Scan implements sql.Scanner. It ignores the column, because Go computes the key from the name.
func (serviceKey) Scan(any) error { return nil }

// Value implements driver.Valuer.
func (k serviceKey) Value() (driver.Value, error) { return escalation.ServiceKey(*k.of), nil }

// derived stores a text that follows from other columns, so that SQL can search or compare it. Go code never reads this
// column.
type derived func() string

// Scan implements sql.Scanner. It ignores the column.
func (derived) Scan(any) error { return nil }

// Value implements driver.Valuer.
func (d derived) Value() (driver.Value, error) { return d(), nil }
