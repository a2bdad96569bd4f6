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
	// uiHeaderTimeout bounds how long a browser may take to send the head of a request.
	uiHeaderTimeout = 10 * time.Second
	// uiStopTimeout is how long requests may finish at the end. The longest ones wait for new events of
	// a workflow and are not worth waiting for.
	uiStopTimeout = time.Second
)

// webUI is Temporal's Web UI on a listener of its own.
//
// It is put together from the parts of the UI server instead of run through its Server, which
// picks no free port, ends the process when a port is in use, and answers to any host name.
type webUI struct {
	listener net.Listener
	server   *http.Server // nil before serve
}

// listenUI opens port (0 means a free one). Browsers that come before serve wait.
func listenUI(ctx context.Context, port int) (*webUI, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", hostPort(port))
	if err != nil {
		return nil, portError(uiService, port, err)
	}
	return &webUI{listener: listener}, nil
}

// serve answers from now on, for the frontend at address. The UI opens at the namespace of o.
func (u *webUI) serve(address string, o Options, logger *serverLogger) error {
	handler, err := uiHandler(&config.Config{
		TemporalGRPCAddress: address,
		DefaultNamespace:    o.Namespace,
		EnableUI:            true,
		HideLogs:            true,
		// The page would ask its makers for news.
		DisableNewsFetch: true,
		// The loopback address has no certificate, and a browser returns a secure cookie over TLS only.
		CORS: config.CORS{CookieInsecure: true},
	})
	if err != nil {
		return fmt.Errorf("build the Web UI: %w", err)
	}
	u.server = &http.Server{
		Handler:           admittedOnly(localHostsOnly(door{token(o.Token), u.port()}.guard(handler))),
		ConnContext:       admission(o.AdmitUI, logger.logger),
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

// uiHandler is the UI: its API, which passes calls on to the frontend, and its pages. Everything that
// a person does there to a workflow stays enabled; payloads are shown as they are, without a codec.
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
	// By default it lets every request pass that has an Authorization header, whatever that says.
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

// admissionKey finds the verdict on a connection in the context of its requests: a func() error.
type admissionKey struct{}

// admission returns what puts the verdict of admit on a connection into the context of its requests. It is
// asked for with the first of them, so that accepting connections waits for nothing. A nil admit is no verdict.
func admission(admit func(net.Conn) error, logger *slog.Logger) func(context.Context, net.Conn) context.Context {
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

// admittedOnly refuses the requests of connections that are not admitted.
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

// localHostsOnly refuses requests that were meant for another host name. A page on the internet can
// have its own name lead to the loopback address, and would then count as the same site: it could
// start workflows, and with them agents.
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
	address, _ := u.listener.Addr().(*net.TCPAddr) // listenUI opens nothing else
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

// close lets short requests finish, and cuts the others off.
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
