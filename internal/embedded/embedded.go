package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.temporal.io/server/temporal"
)

const (
	// DefaultNamespace is the namespace that exists when Options names none.
	DefaultNamespace = "default"
	// DefaultRetention is how long a closed workflow can still be looked at when Options says nothing:
	// long enough to come back to an incident at the end of the month.
	DefaultRetention = 30 * 24 * time.Hour

	// minRetention is the shortest retention that the server accepts.
	minRetention = time.Hour
	// startTimeout bounds Start when its context has no earlier end. A start takes under a second;
	// a busy host may need many times that.
	startTimeout = time.Minute
	// stopTimeout bounds Stop. Each of the two frontends gives its callers a second to finish; the rest is for a machine
	// that is busy.
	stopTimeout = 45 * time.Second
	// databaseStopTimeout bounds how long Stop waits for a reader of the database file, such as a backup.
	databaseStopTimeout = 5 * time.Second
)

// Options says what to run. The zero value is a server in memory, on free ports, with a Web UI.
type Options struct {
	// DatabaseFile is the SQLite file that holds all state; it is made when missing, in a directory
	// that must exist. Empty keeps everything in memory, and Stop loses it.
	DatabaseFile string
	// Namespace is made when missing. Empty means DefaultNamespace.
	Namespace string
	// Retention is how long a closed workflow is kept, at least an hour. It is applied to a
	// namespace that exists already, too. Zero means DefaultRetention.
	Retention time.Duration
	// FrontendPort is the port for clients and workers. Zero means a free one.
	FrontendPort int
	// UIPort is the port of the Web UI. Zero means a free one.
	UIPort int
	// Token is what clients must send, in the header `authorization: Bearer TOKEN`, and what opens the Web UI: see Link.
	// Empty lets everybody who can reach the ports do everything.
	Token string
	// NoUI leaves the Web UI out.
	NoUI bool
	// AdmitUI is asked once about each connection to the Web UI. Its error refuses every request that comes
	// that way, which is told the error's text, whether it has the token or not. Nil admits everybody.
	AdmitUI func(net.Conn) error
	// Logger gets the server's log. Nil means slog.Default().
	Logger *slog.Logger
	// LogLevel is the lowest level that the server may log at. Nil means slog.LevelWarn: a healthy
	// server says hundreds of lines at the levels below.
	LogLevel slog.Leveler

	// tuning is nil for the settings of tuned. The benchmark compares them with the stock ones.
	tuning settings
}

// withDefaults returns o with every empty field filled in.
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

// validate reports every field that cannot work.
func (o Options) validate() error {
	var problems []error
	if o.Retention < minRetention {
		problems = append(problems, fmt.Errorf("a retention of %s is too short; use at least %s", o.Retention, minRetention))
	}
	for _, port := range []struct {
		service string
		number  int
	}{{frontendService, o.FrontendPort}, {uiService, o.UIPort}} {
		if port.number < 0 || port.number > maxPort {
			problems = append(problems, fmt.Errorf(
				"port %d for the %s is outside 0..%d; choose another port, or 0 for a free one", port.number, port.service, maxPort))
		}
	}
	return errors.Join(problems...)
}

// Server is a running Temporal service. Its methods may be called from any goroutine.
type Server struct {
	address  string
	ports    []int
	database *database
	logger   *serverLogger
	temporal temporal.Server
	ui       *webUI // nil without one

	stopOnce sync.Once
	stopErr  error
}

// Start runs a Temporal service as o says, and returns once clients can use it: the frontend
// answers and the namespace exists. The caller must Stop it.
//
// The error is one sentence for the operator when a port is taken, when the database file cannot be
// written, belongs to something else, is in use, or has a schema that this build does not know.
// After an error the database and the ports are free again; only where the server itself gave up
// half-way can parts of it stay until the process ends.
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

// start fills s in as far as it comes. What it filled in is for Stop to end.
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

	// The Web UI's port is opened first, so that a port in use is found before the server runs.
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

// launch builds the server and starts its services. A fatal log line of the server is its way to
// give up, and comes back as the error.
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

// Address is the host and port of the frontend, for clients and workers.
func (s *Server) Address() string { return s.address }

// Ports lists every port that the server listens on, all of them on the loopback address.
func (s *Server) Ports() []int { return slices.Clone(s.ports) }

// UIURL is the root of the Web UI, without a slash at its end. It is empty without a Web UI.
func (s *Server) UIURL() string {
	if s.ui == nil {
		return ""
	}
	return s.ui.url()
}

// WorkflowURL is the page of one workflow execution in the Web UI; an empty runID means the latest
// run. It is empty without a Web UI.
func (s *Server) WorkflowURL(namespace, workflowID, runID string) string {
	if s.ui == nil {
		return ""
	}
	return s.ui.workflowURL(namespace, workflowID, runID)
}

// Stop ends the Web UI and the server, and brings the database file up to date. It takes at most
// about 20 seconds, and says so in its error when the server needs longer. What runs in the server
// stays in the database. Calling Stop again waits for the first call and returns what it returned.
func (s *Server) Stop() error {
	s.stopOnce.Do(func() { s.stopErr = s.stop() })
	return s.stopErr
}

func (s *Server) stop() error {
	// A server that stops complains of everything that it can no longer reach.
	s.logger.quiet()
	var errs []error
	if s.ui != nil {
		errs = append(errs, s.ui.close())
	}
	if s.temporal != nil {
		errs = append(errs, stopWithin(s.temporal, stopTimeout))
	}
	if s.database != nil {
		// After the server, so that nothing holds the file any more.
		ctx, cancel := context.WithTimeout(context.Background(), databaseStopTimeout)
		defer cancel()
		errs = append(errs, s.database.close(ctx))
	}
	return errors.Join(errs...)
}

// stopWithin stops server, and leaves it to its own end after limit.
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
