package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

// cancelPatience limits the wait until PostgreSQL confirms that a call is cancelled. Without a confirmation, the
// connection is closed.
const cancelPatience = 2 * time.Second

// connector opens connections to PostgreSQL. Each call on a connection ends soon after its context has ended, and at
// the latest after the time in limit. If limit is 0, only the context ends a call. Without these limits, the driver
// would wait for the server even if the network loses all packets.
type connector struct {
	config pq.Config
	limit  time.Duration
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	one, err := pq.NewConnectorConfig(c.config)
	if err != nil {
		return nil, err
	}
	sockets := &dialer{}
	one.Dialer(sockets)
	opened, err := one.Connect(ctx)
	if err != nil {
		if text := err.Error(); strings.Contains(text, "session is read-only") ||
			strings.Contains(text, "server is in hot standby mode") {
			return nil, fmt.Errorf("%w: %w", errNoPrimary, oneLineError{err}) // the driver has no type for it
		}
		return nil, oneLineError{err}
	}
	conn := opened.(postgresConn) //nolint:forcetypeassert // a type of the driver, which Connect always returns
	return &connection{postgresConn: conn, socket: *sockets.latest.Load(), limit: c.limit}, nil
}

// errNoPrimary marks a connection to a server that takes no writes, although the URL asks for one that does.
var errNoPrimary = errors.New("no server takes writes")

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return &pq.Driver{} }

// oneLineError is an error whose text has no line breaks. The text of the driver's error has one line for each host.
type oneLineError struct{ error }

func (e oneLineError) Error() string {
	return strings.NewReplacer(":\n", ": ", "\n", "; ").Replace(e.error.Error())
}

// Unwrap returns the error.
func (e oneLineError) Unwrap() error { return e.error }

// dialer opens sockets, and remembers the latest. While Connect runs, the latest socket is the socket of the new
// connection. Later the driver opens further sockets to cancel calls.
type dialer struct{ latest atomic.Pointer[net.Conn] }

var _ pq.DialerContext = (*dialer)(nil)

// DialContext implements pq.DialerContext.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	// With these intervals, a connection to a vanished server fails after half a minute, instead of several minutes.
	with := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second,
		Interval: 5 * time.Second, Count: 3,
	}}
	socket, err := with.DialContext(ctx, network, address)
	if err == nil {
		d.latest.Store(&socket)
	}
	return socket, err
}

// Dial implements pq.Dialer. The driver calls DialContext instead.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer. The driver calls DialContext instead.
func (d *dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// driverConn lists the methods that database/sql calls on a connection of both drivers.
type driverConn interface { // database/sql asks for each of them
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// postgresConn adds the method that only the driver of PostgreSQL has.
type postgresConn interface {
	driverConn
	driver.NamedValueChecker
}

// connection is a connection of the driver that limits the time of each call.
type connection struct {
	postgresConn

	socket net.Conn
	limit  time.Duration
	// inTransaction is set between the beginning and the end of a transaction.
	inTransaction bool
	// spent is set if the connection must not be used again.
	spent atomic.Bool
}

// allow sets the deadline of the next call.
func (c *connection) allow() {
	if c.limit > 0 {
		_ = c.socket.SetDeadline(time.Now().Add(c.limit)) // a closed socket fails anyway
	}
}

// bound limits the following calls by ctx and by the time limit. Call stop after these calls.
func (c *connection) bound(ctx context.Context) (stop func() bool) {
	c.allow()
	return context.AfterFunc(ctx, func() {
		c.spent.Store(true)
		_ = c.socket.SetDeadline(time.Now().Add(cancelPatience))
	})
}

// explain returns err. If the context has ended the call, explain adds the context's reason.
func explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// explainRead returns err in the same way as explain. There is one exception: if the connection was lost outside of a
// transaction, explainRead returns driver.ErrBadConn, so that database/sql repeats the call on another connection.
func (c *connection) explainRead(ctx context.Context, err error) error {
	if _, lost := errors.AsType[net.Error](err); lost && ctx.Err() == nil && !c.inTransaction {
		return driver.ErrBadConn
	}
	return explain(ctx, err)
}

// BeginTx implements driver.ConnBeginTx. If no transaction can begin, BeginTx marks the connection as spent, because
// its server could have become a standby.
func (c *connection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	stop := c.bound(ctx)
	defer stop()
	tx, err := c.postgresConn.BeginTx(ctx, options)
	if err != nil {
		c.spent.Store(true)
		return nil, c.explainRead(ctx, err)
	}
	c.inTransaction = true
	return transaction{tx, c}, nil
}

// ExecContext implements driver.ExecerContext.
func (c *connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	stop := c.bound(ctx)
	defer stop()
	result, err := c.postgresConn.ExecContext(ctx, query, args)
	return result, explain(ctx, err)
}

// QueryContext implements driver.QueryerContext.
func (c *connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	stop := c.bound(ctx)
	defer stop()
	rows, err := c.postgresConn.QueryContext(ctx, query, args)
	return rows, c.explainRead(ctx, err)
}

// Close implements driver.Conn. If the connection was already lost, Close returns no error.
func (c *connection) Close() error {
	c.allow()
	err := c.postgresConn.Close()
	if _, lost := errors.AsType[net.Error](err); lost {
		return nil
	}
	return err
}

// ResetSession implements driver.SessionResetter.
func (c *connection) ResetSession(ctx context.Context) error {
	if c.spent.Load() {
		return driver.ErrBadConn
	}
	return c.postgresConn.ResetSession(ctx)
}

// IsValid implements driver.Validator.
func (c *connection) IsValid() bool { return !c.spent.Load() && c.postgresConn.IsValid() }

// transaction is a transaction of the driver. It limits the time of a commit and of a rollback.
type transaction struct {
	driver.Tx

	on *connection
}

// Commit implements driver.Tx.
func (t transaction) Commit() error {
	t.on.allow()
	t.on.inTransaction = false
	return t.Tx.Commit()
}

// Rollback implements driver.Tx.
func (t transaction) Rollback() error {
	t.on.allow()
	t.on.inTransaction = false
	return t.Tx.Rollback()
}
