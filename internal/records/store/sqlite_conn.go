package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// maxStatements limits the statements that a connection keeps. This package has fewer queries, but the text of some
// depends on the length of a list.
const maxStatements = 500

// sqliteConnector opens connections to SQLite that keep their statements.
type sqliteConnector struct{ dsn string }

// Connect implements driver.Connector.
func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	conn, is := opened.(driverConn)
	if !is {
		return nil, errors.Join(fmt.Errorf("%T is not a connection of the driver as this package knows it", opened),
			opened.Close())
	}
	return &sqliteConn{driverConn: conn, kept: map[string]*sqliteStatement{}}, nil
}

// Driver implements driver.Connector.
func (c sqliteConnector) Driver() driver.Driver { return &sqlite.Driver{} }

// sqliteConn is a connection that keeps its statements with arguments. The driver would compile a statement at each
// call, and for most of this package's queries that takes longer than the query.
type sqliteConn struct {
	driverConn

	kept map[string]*sqliteStatement
}

// sqliteStatement is a compiled statement. While its rows are open it cannot begin anew.
type sqliteStatement struct {
	sqliteDriverStatement

	open bool
}

// sqliteDriverStatement lists the methods of the driver's statements that this package calls.
type sqliteDriverStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// ExecContext implements driver.ExecerContext.
func (c *sqliteConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	statement, err := c.statement(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if statement == nil {
		return c.driverConn.ExecContext(ctx, query, args)
	}
	return statement.ExecContext(ctx, args)
}

// QueryContext implements driver.QueryerContext.
func (c *sqliteConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	statement, err := c.statement(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if statement == nil {
		return c.driverConn.QueryContext(ctx, query, args)
	}
	rows, err := statement.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	statement.open = true
	return sqliteRows{rows, statement}, nil
}

// statement returns the kept statement of a query; nil if the query must run without one.
func (c *sqliteConn) statement(ctx context.Context, query string, args []driver.NamedValue) (*sqliteStatement, error) {
	if len(args) == 0 { // a script, for instance
		return nil, nil //nolint:nilnil // see above
	}
	if known := c.kept[query]; known != nil {
		if known.open {
			return nil, nil //nolint:nilnil // see above
		}
		return known, nil
	}
	prepared, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	compiled, is := prepared.(sqliteDriverStatement)
	if !is {
		return nil, prepared.Close()
	}
	if len(c.kept) >= maxStatements {
		if err := c.forget(); err != nil {
			return nil, errors.Join(err, prepared.Close())
		}
	}
	statement := &sqliteStatement{sqliteDriverStatement: compiled}
	c.kept[query] = statement
	return statement, nil
}

// forget closes the kept statements that are not in use.
func (c *sqliteConn) forget() (err error) {
	for query, statement := range c.kept {
		if !statement.open {
			delete(c.kept, query)
			err = errors.Join(err, statement.Close())
		}
	}
	return err
}

// Close implements driver.Conn.
func (c *sqliteConn) Close() error { return errors.Join(c.forget(), c.driverConn.Close()) }

// sqliteRows are the rows of a kept statement.
type sqliteRows struct {
	driver.Rows

	of *sqliteStatement
}

// Close implements driver.Rows.
func (r sqliteRows) Close() error {
	r.of.open = false
	return r.Rows.Close()
}
