package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// headerTimeout limits how long a client can take to send the header of a request.
	headerTimeout = 5 * time.Second
	// readyTimeout limits how long the readiness check waits for Temporal and the database.
	readyTimeout = 3 * time.Second
	// shutdownTimeout limits how long Close waits for answers that are being sent.
	shutdownTimeout = time.Second
)

// Probe returns the reason why the worker is not ready; nil if the worker is ready. The text of the error must contain
// no secret.
type Probe func(ctx context.Context) error

// errNotWorking is the result of the readiness check if no probe is set.
var errNotWorking = errors.New("the worker is starting or stopping")

// metricsHandler serves the metrics and the health checks.
func (t *Telemetry) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(t.metrics.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(t.logger.Handler(), slog.LevelWarn),
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeLine(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := t.ready(ctx); err != nil {
			writeLine(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		writeLine(w, http.StatusOK, "ready")
	})
	return mux
}

// writeLine answers a request with one line of text.
func writeLine(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, line)
}

// pprofHandler serves profiles. It rejects a connection if refuse returns an error for this connection.
func pprofHandler(refuse func(net.Conn) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		if conn == nil || refuse != nil && refuse(conn) != nil {
			writeLine(w, http.StatusForbidden, "profiles are not for agents")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// serve starts an HTTP server with the given address and handler. The server runs until the caller calls stop. The
// result port is the port of the listener.
func serve(
	ctx context.Context, address string, handler http.Handler, logger *slog.Logger,
) (port int, stop func() error, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return 0, nil, err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil { // a profile is being taken
			_ = server.Close()
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}
	tcp, _ := listener.Addr().(*net.TCPAddr)
	return tcp.Port, stop, nil
}
