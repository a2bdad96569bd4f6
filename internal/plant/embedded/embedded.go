package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.temporal.io/server/temporal"
)

const (
	// DefaultNamespace is the namespace that Start creates if Options names none.
	DefaultNamespace = "default"
	// DefaultRetention is the default of Options.Retention. With it an operator can look at an incident from the
	// beginning of a month until the end of that month.
	DefaultRetention = 30 * 24 * time.Hour

	// minRetention is the shortest retention accepted by the server.
	minRetention = time.Hour
	// startTimeout limits Start if the context of Start has no earlier deadline. A start takes less than a second, but
	// can take much longer on a busy host.
	startTimeout = time.Minute
	// stopTimeout limits Stop. Each of the two frontends gives its callers a second to finish. The rest is a
	// reserve for a busy host.
	stopTimeout = 45 * time.Second
	// databaseStopTimeout limits the time for which Stop waits for readers of the database file, such as a backup.
	databaseStopTimeout = 5 * time.Second
)

// Options configures Start. The zero value gives a server in memory on free ports, with a Web UI.
type Options struct {
	// DatabaseFile is the SQLite file for all state. A missing file is created, but its directory must exist. If
	// DatabaseFile is empty, the state is kept in memory and lost at Stop.
	DatabaseFile string
	// Namespace is the name of the namespace. Start creates the namespace if it is missing. Empty means
	// DefaultNamespace.
	Namespace string
	// Retention is the time for which the server keeps closed workflows, at least an hour. The retention also applies
	// to an existing namespace. Zero means DefaultRetention.
	Retention time.Duration
	// FrontendPort is the port for clients and workers. Zero means any free port.
	FrontendPort int
	// UIPort is the port of the Web UI. Zero means any free port.
	UIPort int
	// Token is required from clients in the header `authorization: Bearer TOKEN`. If Token is empty, everybody who can
	// reach the ports has full access.
	Token string
	// Guard wraps the Web UI's handler, and passes on the requests of those who have full access. Nil passes on
	// requests with the token in the header. Without a Token, Guard is not called.
	Guard func(http.Handler) http.Handler
	// NoUI disables the Web UI.
	NoUI bool
	// Admit is called once for each connection to the Web UI, and for each connection to the frontend that shows the
	// token. If it returns an error, all requests on the connection are refused with the error's text, even with the
	// token. Nil admits everybody.
	Admit func(Connection) error
	// Logger receives the server's log. Nil means slog.Default().
	Logger *slog.Logger
	// LogLevel is the lowest level of the server's log. Nil means slog.LevelWarn, because a healthy server logs
	// hundreds of lines at lower levels.
	LogLevel slog.Leveler

	// tuning replaces the settings that the function tuned returns; nil keeps them. The benchmark sets tuning to run a
	// server with the stock settings.
	tuning settings
}

// withDefaults returns o with defaults for all empty fields.
func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Retention == 0 {
		o.Retention = DefaultRetention
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.LogLevel == nil {
		o.LogLevel = slog.LevelWarn
	}
	if o.tuning == nil {
		o.tuning = tuned()
	}
	return o
}

// validate returns an error about every invalid field.
func (o Options) validate() error {
	var problems []error
	if o.Retention < minRetention {
		problems = append(problems, fmt.Errorf("a retention of %s is too short; use at least %s", o.Retention,
			minRetention))
	}
	for _, port := range []struct {
		service string
		number  int
	}{{frontendService, o.FrontendPort}, {uiService, o.UIPort}} {
		if port.number < 0 || port.number > maxPort {
			problems = append(problems, fmt.Errorf(
				"port %d for the %s is outside 0..%d; choose another port, or 0 for a free one", port.number,
				port.service, maxPort))
		}
	}
	return errors.Join(problems...)
}

// Server is a running Temporal service. All goroutines can call its methods.
type Server struct {
	address  string
	ports    []int
	database *database
	logger   *serverLogger
	temporal temporal.Server
	ui       *webUI // nil without a Web UI

	stopOnce sync.Once
	stopErr  error
}

// Start runs a Temporal service with options o. It returns when clients can use the service: the frontend answers and
// the namespace exists. The caller must call Stop.
//
// If a port is in use, or if the database file is in use or not usable for this build, the error is one sentence for
// the operator. After an error the database and the ports are released. If the server failed during its start, parts of
// the server can remain until the process ends.
func Start(ctx context.Context, o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	s := &Server{logger: newServerLogger(o.Logger, o.LogLevel)}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// start starts the parts of s. It stores each part in s at once, so that Stop can end the parts that were started
// before an error.
func (s *Server) start(ctx context.Context, o Options) (err error) {
	if s.database, err = openDatabase(ctx, o.DatabaseFile); err != nil {
		return err
	}
	ports, err := reservePorts(o.FrontendPort)
	if err != nil {
		return err
	}
	defer ports.release()
	s.address = ports.address(frontendService)
	s.ports = slices.Sorted(maps.Values(ports.numbers))

	// Open the Web UI's port first, so that the start fails before the server runs if the port is in use.
	if !o.NoUI {
		if s.ui, err = listenUI(ctx, o.UIPort); err != nil {
			return err
		}
		s.ports = append(s.ports, s.ui.port())
	}
	if err := createNamespace(s.database, o); err != nil {
		return err
	}
	if err := s.launch(ports, o); err != nil {
		return fmt.Errorf("start the Temporal server: %w", err)
	}
	if err := awaitNamespace(ctx, s.address, o, s.logger); err != nil {
		return err
	}
	if s.ui == nil {
		return nil
	}
	return s.ui.serve(s.address, o, s.logger)
}

// launch builds the server and starts its services. For some failures the server logs a fatal line and returns no
// error. In that case launch returns the line as an error.
func (s *Server) launch(ports *ports, o Options) (err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case fatalError:
			err = reason
		default:
			panic(reason)
		}
	}()
	server, err := newTemporal(s.database, ports, o, s.logger)
	if err != nil {
		return err
	}
	s.temporal = server
	return server.Start()
}

// Address returns the host and port of the frontend, for clients and workers.
func (s *Server) Address() string { return s.address }

// Ports returns all ports on which the server listens. All of them are on the loopback address.
func (s *Server) Ports() []int { return slices.Clone(s.ports) }

// UIURL returns the root URL of the Web UI without a trailing slash. The URL is empty if there is no Web UI.
func (s *Server) UIURL() string {
	if s.ui == nil {
		return ""
	}
	return s.ui.url()
}

// WorkflowURL returns the URL of a workflow execution's page in the Web UI. An empty runID means the latest
// run. The URL is empty if there is no Web UI.
func (s *Server) WorkflowURL(namespace, workflowID, runID string) string {
	if s.ui == nil {
		return ""
	}
	return s.ui.workflowURL(namespace, workflowID, runID)
}

// Stop ends the Web UI and the server, and then merges the write-ahead log into the database file. It takes at most
// about 50 seconds. If the server needs longer, Stop returns an error that says so. Running workflows stay in the
// database. A further call waits for the first call, and returns the result of the first call.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() { s.stopErr = s.stop() })
	return s.stopErr
}

func (s *Server) stop() error {
	// A stopping server logs complaints about parts that it can no longer reach.
	s.logger.quiet()
	var errs []error
	if s.ui != nil {
		errs = append(errs, s.ui.close())
	}
	if s.temporal != nil {
		errs = append(errs, stopWithin(s.temporal, stopTimeout))
	}
	if s.database != nil {
		// Close the database after the server, so that nothing uses the file any more.
		ctx, cancel := context.WithTimeout(context.Background(), databaseStopTimeout)
		defer cancel()
		errs = append(errs, s.database.close(ctx))
	}
	return errors.Join(errs...)
}

// stopWithin stops server. If that takes longer than limit, stopWithin returns an error, and server continues to stop
// in the background.
func stopWithin(server temporal.Server, limit time.Duration) error {
	stopped := make(chan error, 1)
	go func() { stopped <- server.Stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			return fmt.Errorf("stop the Temporal server: %w", err)
		}
		return nil
	case <-time.After(limit):
		return fmt.Errorf("the Temporal server did not stop within %s", limit)
	}
}
