package store

import (
	"context"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// Time limits for PostgreSQL. The parameters connect_timeout, lock_timeout, statement_timeout and
// idle_in_transaction_session_timeout in the URL replace the first four limits.
const (
	// connectTimeout limits the time for opening a connection, including TLS and authentication.
	connectTimeout = 5 * time.Second
	// lockTimeout limits the wait for the transactions of other writers, like busyTimeout for SQLite.
	lockTimeout = busyTimeout
	// statementTimeout limits one statement. A statement takes milliseconds after its wait for the lock.
	statementTimeout = 30 * time.Second
	// idleTimeout limits the time between two statements of a transaction. When the time is over, the server ends the
	// transaction and releases its lock. So a host that loses its connection does not block the other writers for long.
	idleTimeout = 15 * time.Second
	// answerTimeout limits the wait for the server's answer. A reachable server enforces the shorter
	// statementTimeout. So answerTimeout expires only if the server is unreachable.
	answerTimeout = statementTimeout + 5*time.Second
)

// randomPageCost is the planner's cost of a page that is not the next one. PostgreSQL's default, 4, is that of a
// rotating disk. With it, the pages' queries read all sessions instead of an index.
const randomPageCost = "1.1"

const (
	// maxIdleTime limits the time that a connection is unused. It is shorter than the time after which firewalls drop
	// connections.
	maxIdleTime = 5 * time.Minute
	// maxLifetime limits the age of a connection. A new connection uses the current address of the server's host name.
	maxLifetime = 30 * time.Minute
	// oldestServer is the oldest version that the driver supports.
	oldestServer = 14
)

// OpenPostgres opens the PostgreSQL database at rawURL, and migrates its schema. The Store opens at most maxConns
// connections.
//
// OpenPostgres refuses a schema that belongs to another program, or that a newer release has migrated. It also refuses
// a database with an encoding other than UTF-8, and a server that does not write commits to disk. The errors contain no
// password.
func OpenPostgres(ctx context.Context, rawURL string, maxConns int) (*Store, error) {
	return connectPostgres(ctx, rawURL, maxConns, preparePostgres)
}

// OpenExistingPostgres opens the PostgreSQL database at rawURL like OpenPostgres, but does not migrate it. If its tables
// are missing or those of an earlier release, and the user can create them, the error is ErrUnmigrated.
func OpenExistingPostgres(ctx context.Context, rawURL string, maxConns int) (*Store, error) {
	return connectPostgres(ctx, rawURL, maxConns, checkPostgres)
}

func connectPostgres(
	ctx context.Context, rawURL string, maxConns int, prepare func(context.Context, *sql.DB, pq.Config) error,
) (*Store, error) {
	config, err := postgresConfig(rawURL)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector{config, answerTimeout})
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxIdleTime(maxIdleTime)
	db.SetConnMaxLifetime(maxLifetime)
	if err := prepare(ctx, db, config); err != nil {
		return nil, placeOf(config).explain("open", errors.Join(explainPostgres(err), db.Close()))
	}
	return &Store{db: db, dialect: postgresDialect, place: placeOf(config), writing: make(chan struct{}, 1)}, nil
}

// postgresConfig returns the driver's configuration for a URL.
func postgresConfig(rawURL string) (config pq.Config, err error) {
	if _, err := url.Parse(rawURL); err != nil { // the error would contain the password
		return config, fmt.Errorf("%w: the URL of the database: write special characters in the password as %%XX",
			ErrInvalid)
	}
	if config, err = pq.NewConfig(rawURL); err != nil {
		return config, fmt.Errorf("%w: the URL of the database: %w", ErrInvalid, err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.ApplicationName == "" {
		config.ApplicationName = "claudeops"
	}
	if len(config.Multi) > 0 && config.TargetSessionAttrs == "" {
		// of several servers only the primary takes the records
		config.TargetSessionAttrs = pq.TargetSessionAttrsReadWrite
	}
	config.BinaryParameters = true // one round trip for a query instead of two
	for name, value := range map[string]string{
		"lock_timeout": milliseconds(lockTimeout), "statement_timeout": milliseconds(statementTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTimeout), "random_page_cost": randomPageCost,
	} {
		if config.Runtime[name] == "" {
			config.Runtime[name] = value
		}
	}
	return config, nil
}

func milliseconds(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// preparePostgres checks that the database is usable and belongs to this program. If the schema is missing or old,
// preparePostgres migrates it. If not, preparePostgres only reads, so the user needs no right to create tables.
func preparePostgres(ctx context.Context, db *sql.DB, config pq.Config) error {
	if err := checkServer(ctx, db); err != nil {
		return err
	}
	ours, err := refuseForeign(ctx, db, postgresDialect)
	if err != nil {
		return err
	}
	if ours {
		provider, err := migrator(db, postgresDialect)
		if err != nil {
			return err
		}
		if current, err := upToDate(ctx, provider); current || err != nil {
			return err
		}
	}
	return migratePostgres(ctx, config)
}

// checkPostgres checks that the database is usable, belongs to this program, and has the tables of this release.
func checkPostgres(ctx context.Context, db *sql.DB, _ pq.Config) error {
	if err := checkServer(ctx, db); err != nil {
		return err
	}
	ours, err := refuseForeign(ctx, db, postgresDialect)
	if err == nil {
		err = checkMigrated(ctx, db, postgresDialect, ours)
	}
	if !errors.Is(err, ErrUnmigrated) {
		return err
	}
	var may bool
	const query = "SELECT has_schema_privilege(current_schema(), 'CREATE')"
	if asked := db.QueryRowContext(ctx, query).Scan(&may); asked == nil && !may {
		return errors.New("it has no tables of this release, and its user must not create them: run `claudeops db " +
			"migrate` with the URL of the owner")
	}
	return err
}

const serverQuery = `
SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding'),
    current_setting('synchronous_commit'), COALESCE(current_schema(), '')`

// checkServer returns an error if the settings of the server break a promise of this package.
func checkServer(ctx context.Context, db *sql.DB) error {
	var version int
	var encoding, commit, schema string
	if err := db.QueryRowContext(ctx, serverQuery).Scan(&version, &encoding, &commit, &schema); err != nil {
		return fmt.Errorf("read the server's settings: %w", err)
	}
	switch {
	case version < oldestServer:
		return fmt.Errorf("%w, because the server is PostgreSQL %d: use version %d or newer", errUnusable, version,
			oldestServer)
	case encoding != "UTF8":
		return fmt.Errorf("%w, because its encoding is %s: create it with ENCODING 'UTF8'", errUnusable, encoding)
	case commit == "off":
		return fmt.Errorf("%w, because it can lose commits: set synchronous_commit to on for it", errUnusable)
	case schema == "":
		return fmt.Errorf("%w, because no schema of the search_path exists: create one, or correct search_path",
			errUnusable)
	default:
		return nil
	}
}

// migratePostgres migrates the schema. Meanwhile no other process migrates or writes. The time of a statement is not
// limited, because building an index on a large table takes long.
func migratePostgres(ctx context.Context, config pq.Config) error {
	config = config.Clone()
	config.Runtime["statement_timeout"], config.Runtime["idle_in_transaction_session_timeout"] = "0", "0"
	config.Runtime["lock_timeout"] = fmt.Sprint(lockPatience.Milliseconds())
	db := sql.OpenDB(connector{config, 0})
	defer func() { _ = db.Close() }() // nothing is left to write
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin to migrate: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // the transaction only holds the lock
	if _, err := tx.ExecContext(ctx, postgresDialect.lock); err != nil {
		return fmt.Errorf("wait for other processes that migrate or write: %w", err)
	}
	if _, err := refuseForeign(ctx, db, postgresDialect); err != nil {
		return err
	}
	provider, err := migrator(db, postgresDialect)
	if err != nil {
		return err
	}
	if current, err := upToDate(ctx, provider); current || err != nil {
		return err
	}
	return migrate(ctx, provider)
}

// explainPostgres adds advice for the operator to an error from opening a database.
func explainPostgres(err error) error {
	switch code := postgresCode(err); {
	case code == pqerror.InvalidPassword || code == pqerror.InvalidAuthorizationSpecification:
		return fmt.Errorf("%w: correct user and password in its URL and, if the server wants one, the client "+
			"certificate "+
			"(sslcert, sslkey)", err)
	case code == pqerror.InvalidCatalogName:
		return fmt.Errorf("%w: create the database, or correct its name in the URL", err)
	case code == pqerror.InsufficientPrivilege:
		return fmt.Errorf("%w: grant the user CREATE on the schema, or let another user migrate it first", err)
	case errors.Is(err, pq.ErrSSLNotSupported):
		return fmt.Errorf("%w: turn TLS on there or, on a network that nobody else can read, add sslmode=disable to "+
			"the URL", err)
	default:
		return explainCertificate(err)
	}
}

// explainCertificate adds advice to an error from the files of certificates, or from what they say.
func explainCertificate(err error) error {
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return fmt.Errorf("%w: let sslrootcert in its URL name the file of the authority that signed the server's "+
			"certificate", err)
	}
	if _, is := errors.AsType[x509.HostnameError](err); is {
		return fmt.Errorf("%w: use a name of the certificate as host in its URL", err)
	}
	if alert, is := errors.AsType[*net.OpError](err); is && alert.Op == "remote error" &&
		strings.Contains(alert.Error(), "certificate") {
		return fmt.Errorf("%w: let sslcert in its URL name a certificate of an authority that the server trusts (its "+
			"ssl_ca_file)", err)
	}
	if _, is := errors.AsType[*fs.PathError](err); is {
		return fmt.Errorf("%w: correct sslrootcert, sslcert and sslkey in its URL", err)
	}
	return err
}

// postgresCode returns PostgreSQL's code of an error; "" if err does not come from PostgreSQL.
func postgresCode(err error) pqerror.Code {
	if failure, ok := errors.AsType[*pq.Error](err); ok {
		return failure.Code
	}
	return ""
}

// permanentClasses lists the classes of PostgreSQL's codes for errors in the request or in the data: invalid values
// (22), violated constraints (23), wrong statements (42) and exceeded limits of the program (54).
var permanentClasses = []string{"22", "23", "42", "54"}

// postgresPermanent reports whether PostgreSQL would return the same error on a retry. For other errors, a retry can
// succeed, because they depend on conditions that change: connections, locks, disk, permissions, and which server is
// the primary.
func postgresPermanent(err error) bool {
	code := postgresCode(err)
	if code == pqerror.InsufficientPrivilege {
		return false
	}
	for _, class := range permanentClasses {
		if strings.HasPrefix(string(code), class) {
			return true
		}
	}
	return code == pqerror.DataCorrupted || code == pqerror.IndexCorrupted
}

func postgresMissingReference(err error) bool {
	return postgresCode(err) == pqerror.ForeignKeyViolation
}
