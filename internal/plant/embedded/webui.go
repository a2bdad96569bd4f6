package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
)

const (
	// uiHeaderTimeout limits the time in which a browser must send a request's header.
	uiHeaderTimeout = 10 * time.Second
	// uiStopTimeout limits how long Stop waits until running requests have finished. The longest requests do nothing
	// but wait for new events of a workflow.
	uiStopTimeout = time.Second

	healthPath = "/healthz"
)

// webUI is Temporal's Web UI on a listener of its own.
//
// webUI uses the parts of the UI server instead of the server's type Server. That type cannot choose a free port, ends
// the process if a port is in use, and answers to any host name.
type webUI struct {
	listener net.Listener
	server   *http.Server // nil before serve
}

// listenUI opens port (0 means any free port). If a browser connects before the call of serve, the browser waits.
func listenUI(ctx context.Context, port int) (*webUI, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", hostPort(port))
	if err != nil {
		return nil, portError(uiService, port, err)
	}
	return &webUI{listener: listener}, nil
}

// serve starts answering requests. The UI connects to the Temporal frontend at the given address, and first shows the
// namespace that o names.
func (u *webUI) serve(address string, o Options, logger *serverLogger) error {
	handler, err := uiHandler(&config.Config{
		TemporalGRPCAddress: address,
		DefaultNamespace:    o.Namespace,
		EnableUI:            true,
		HideLogs:            true,
		// Do not let the page fetch news from its makers.
		DisableNewsFetch: true,
		// Allow an insecure cookie. The loopback address has no certificate, and browsers return a secure cookie only
		// over TLS.
		CORS: config.CORS{CookieInsecure: true},
	})
	if err != nil {
		return fmt.Errorf("build the Web UI: %w", err)
	}
	u.server = &http.Server{
		Handler:           admittedOnly(localHostsOnly(guarded(o, handler))),
		ConnContext:       uiAdmission(o.Admit, logger.logger),
		ReadHeaderTimeout: uiHeaderTimeout,
		ErrorLog:          slog.NewLogLogger(logger.logger.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := u.server.Serve(u.listener); !errors.Is(err, http.ErrServerClosed) {
			logger.logger.Error("the Web UI ended", slog.Any("error", err))
		}
	}()
	return nil
}

// uiHandler returns the handler of the UI: its pages, and an API that passes calls to the frontend. All actions on
// workflows stay enabled. Payloads are shown without a codec.
func uiHandler(settings *config.Config) (http.Handler, error) {
	provider, err := config.NewConfigProviderWithRefresh(settings)
	if err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	pages, err := fs.Sub(assets, "local")
	if err != nil {
		return nil, err
	}
	secureCookie := !settings.CORS.CookieInsecure
	tokenCheck := csrf.MiddlewareConfig(provider, secureCookie)
	// By default the CSRF check passes every request with an Authorization header, whatever the header's value.
	tokenCheck.Skipper = func(c echo.Context) bool { return showedToken(c.Request()) }
	router := echo.New()
	router.Use(
		middleware.Recover(),
		middleware.Gzip(),
		middleware.Secure(),
		csrf.EnsureTokenCookie(secureCookie),
		middleware.CSRFWithConfig(tokenCheck),
	)
	route.SetHealthRoute(router)
	route.SetRenderRoute(router, settings.PublicPath)
	return router, errors.Join(
		route.SetAPIRoutes(router, provider, nil),
		route.SetUIRoutes(router, settings.PublicPath, pages),
	)
}

// shownTokenKey marks the context of requests with the token in their header.
type shownTokenKey struct{}

func withShownToken(ctx context.Context) context.Context {
	return context.WithValue(ctx, shownTokenKey{}, true)
}

// showedToken reports whether the header of r contained the token. A cookie does not count, because a browser can add
// the cookie to requests that another page sends.
func showedToken(r *http.Request) bool {
	showed, _ := r.Context().Value(shownTokenKey{}).(bool)
	return showed
}

// admissionKey is the context key of a func() error. That function returns the result of Options.Admit for the
// connection.
type admissionKey struct{}

// uiAdmission returns a function that stores the result of admit in the context of a connection's requests. The
// function calls admit at the first request, so that accepting connections does not wait for admit. If admit is nil,
// the function stores nothing.
func uiAdmission(admit func(Connection) error, logger *slog.Logger) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, conn net.Conn) context.Context {
		if admit == nil {
			return ctx
		}
		return context.WithValue(ctx, admissionKey{}, sync.OnceValue(func() error {
			err := admit(conn)
			if err != nil {
				logger.Warn("the Web UI refuses a connection", slog.Any("error", err))
			}
			return err
		}))
	}
}

// admittedOnly refuses the requests of connections that were not admitted.
func admittedOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if verdict, asked := r.Context().Value(admissionKey{}).(func() error); asked {
			if err := verdict(); err != nil {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// localHostsOnly refuses requests for other host names. A page on the internet can make its own name resolve to the
// loopback address. The browser would then treat that page and the Web UI as one site, and the page could start
// workflows and agents.
func localHostsOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch (&url.URL{Host: r.Host}).Hostname() {
		case loopback, "localhost", "::1":
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "This Web UI answers to "+loopback+" and localhost only.", http.StatusForbidden)
		}
	})
}

func (u *webUI) port() int {
	address, _ := u.listener.Addr().(*net.TCPAddr) // listenUI opens only TCP listeners
	return address.Port
}

func (u *webUI) url() string { return "http://" + u.listener.Addr().String() }

func (u *webUI) workflowURL(namespace, workflowID, runID string) string {
	page := u.url() + "/namespaces/" + url.PathEscape(namespace) + "/workflows/" + url.PathEscape(workflowID)
	if runID == "" {
		return page
	}
	return page + "/" + url.PathEscape(runID) + "/history"
}

// close lets short requests finish and interrupts the remaining requests.
func (u *webUI) close() error {
	if u.server == nil {
		return u.listener.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), uiStopTimeout)
	defer cancel()
	err := u.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = u.server.Close()
	}
	if err != nil {
		return fmt.Errorf("stop the Web UI: %w", err)
	}
	return nil
}
