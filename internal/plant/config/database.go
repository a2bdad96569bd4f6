package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lib/pq"
)

const sqliteScheme = "sqlite"

// postgresSchemes lists the schemes of URLs of PostgreSQL databases. Both schemes have the same meaning.
var postgresSchemes = []string{"postgres", "postgresql"}

// fileURL formats path in the syntax of CLAUDEOPS_DATABASE_URL.
func fileURL(path string) string {
	return (&url.URL{Scheme: sqliteScheme, Path: path}).String()
}

// DatabaseFile returns the path of the SQLite database. If DatabaseURL is not the URL of a file, or if the URL has more
// parts than the path, it returns "".
func (s State) DatabaseFile() string {
	parsed, err := url.Parse(s.DatabaseURL)
	if err != nil || !filepath.IsAbs(parsed.Path) || parsed.Path == "/" {
		return ""
	}
	if *parsed != (url.URL{Scheme: sqliteScheme, Path: parsed.Path, RawPath: parsed.RawPath}) {
		return "" // a host, a user or parameters would be ignored silently
	}
	return parsed.Path
}

// DatabaseServer is the address of a PostgreSQL server.
type DatabaseServer struct {
	// Host is a name or an address, or the directory of a Unix socket.
	Host string
	Port int
}

// DatabaseServers returns the addresses of the PostgreSQL servers, in the order in which the driver tries them. A
// server with the parameter hostaddr has two addresses: its name and hostaddr. If the database is not PostgreSQL, the
// list is empty.
func (s State) DatabaseServers() []DatabaseServer {
	config, err := s.postgres()
	if err != nil {
		return nil
	}
	all := append([]pq.ConfigMultihost{{Host: config.Host, Hostaddr: config.Hostaddr, Port: config.Port}},
		config.Multi...)
	var servers []DatabaseServer
	for _, one := range all {
		servers = append(servers, DatabaseServer{one.Host, int(one.Port)})
		if one.Hostaddr.IsValid() {
			servers = append(servers, DatabaseServer{one.Hostaddr.String(), int(one.Port)})
		}
	}
	return servers
}

// DatabaseCredentials returns the paths of the files with credentials for PostgreSQL: the client's key and the password
// file.
func (s State) DatabaseCredentials() []string {
	config, err := s.postgres()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc([]string{config.SSLKey, config.Passfile},
		func(path string) bool { return !filepath.IsAbs(path) })
}

var (
	errNoPostgres = errors.New("be the URL of a PostgreSQL database")
	errSpelling   = errors.New("be spelled postgres://user:password@host:5432/database, with special characters in " +
		"the password as %XX")
	errDatabaseName = errors.New("name a database after the host, as in postgres://user:password@host:5432/claudeops")
)

// isPostgres reports whether rawURL looks like a URL of PostgreSQL, even a misspelled one.
func isPostgres(rawURL string) bool { return strings.HasPrefix(rawURL, "postgres") }

// postgres returns the driver's configuration for DatabaseURL. The text of its error continues the phrase "it must
// ...", and contains no password.
func (s State) postgres() (config pq.Config, err error) {
	if !isPostgres(s.DatabaseURL) {
		return config, errNoPostgres
	}
	parsed, err := url.Parse(s.DatabaseURL) // its error contains the password
	database := ""
	if err == nil {
		database = strings.TrimPrefix(parsed.Path, "/")
	}
	switch {
	case err != nil || !slices.Contains(postgresSchemes, parsed.Scheme) || parsed.Opaque != "" || parsed.Fragment != "":
		return config, errSpelling
	case strings.ContainsAny(database, "@/"): // the path of a misspelled URL can contain a part of the password
		return config, errSpelling
	case database == "":
		return config, errDatabaseName
	}
	if config, err = pq.NewConfig(s.DatabaseURL); err != nil {
		return config, fmt.Errorf("have valid parameters: %s", strings.TrimPrefix(err.Error(), "pq: "))
	}
	return config, nil
}

var errNoDatabase = errors.New("be the URL of a file with an absolute path, such as " +
	"sqlite:///var/lib/claudeops/claudeops.db, or of a PostgreSQL database, such as " +
	"postgres://user:password@host:5432/claudeops")

// OwnDatabaseURL returns the URL of the database file in the state directory.
func (s State) OwnDatabaseURL() string { return fileURL(filepath.Join(s.Dir, "claudeops.db")) }

// WithDatabase returns a copy of s with another database. The text of its error continues the phrase "it must ...", and
// contains no password.
func (s State) WithDatabase(rawURL string) (State, error) {
	s.DatabaseURL = rawURL
	return s, s.checkDatabase()
}

// checkDatabase checks DatabaseURL. The text of its error continues the phrase "it must ...", and contains no password.
func (s State) checkDatabase() error {
	if isPostgres(s.DatabaseURL) {
		_, err := s.postgres()
		return err
	}
	if s.DatabaseFile() == "" {
		return errNoDatabase
	}
	return nil
}

func (s State) validateDatabase(p *problems) {
	if p.given("DATABASE_URL") {
		err := s.checkDatabase()
		p.must("DATABASE_URL", err == nil, "%s", errorText(err))
	}
	p.must("DATABASE_CONNECTIONS", s.DatabaseConnections >= 2 && s.DatabaseConnections <= 100, "be between 2 and 100")
}
