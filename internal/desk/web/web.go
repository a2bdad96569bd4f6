// Package web is the HTTP server for people and programs: it puts the API, the pages and the event streams together,
// and keeps everybody out who may not use them. It decides nothing about chains; internal/desk/operations does.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const (
	// headerTimeout limits the time in which a client must send a request's header, and idleTimeout the time for which
	// a connection waits for the next request. Requests themselves have no limit, because streams last.
	headerTimeout, idleTimeout = 10 * time.Second, 2 * time.Minute
	// bodyTimeout limits the time in which a client must send a request's body.
	bodyTimeout = 30 * time.Second
	// maxHeader limits a request's header, in bytes. Cookies of other servers on the same host have room.
	maxHeader = 32 << 10
	// defaultBody limits a request's body, in bytes. A request for a chain has at most 100,000 bytes.
	defaultBody = 256 << 10
	// maxCompletionBody limits a request for a chat completion, in bytes. It has the whole history of the chat, with
	// its pictures, which are left out while it is read.
	maxCompletionBody = 64 << 20
	// maxHookBody limits a delivery of alerts, in bytes. A thousand alerts have about one megabyte.
	maxHookBody = 4 << 20
	// stopTimeout limits how long a stopping server waits for running requests.
	stopTimeout = 5 * time.Second
)

// Part is a part of the server, such as its API or its pages.
type Part interface {
	// Register adds the routes of the part.
	Register(router *access.Router)
}

// Options describe a server.
type Options struct {
	// Access finds out who sends a request.
	Access *access.Access
	// Parts are the API, the pages, and what else the server has.
	Parts []Part
	// Hosts are the names by which the server may be called, without a port. If a page on the internet makes its own
	// name resolve to this server's address, the browser would treat that page and this server as one site.
	Hosts []string
	// Origins are the addresses by which browsers reach the server if a proxy changes the name in the header Host.
	Origins []string
	// Admit returns an error for a connection that must not be served, whatever it shows. Nil admits all.
	Admit func(net.Conn) error
	// MaxBody limits a request's body, in bytes; 0 means 256 KiB. A chat completion may have 4 MiB.
	MaxBody int64
	// Certificate is the certificate for https; nil serves http.
	Certificate func() (*tls.Certificate, error)
	Logger      *slog.Logger
}

// Server is an HTTP server.
type Server struct {
	options Options
	router  *access.Router
	handler http.Handler
}

// New returns a server. It does not listen yet.
func New(options Options) (*Server, error) {
	if options.Access == nil || len(options.Hosts) == 0 {
		return nil, errors.New("the web server needs to know who may use it, and its host names")
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.MaxBody == 0 {
		options.MaxBody = defaultBody
	}
	s := &Server{options: options}
	s.router = access.NewRouter(s.refuse)
	options.Access.Register(s.router)
	s.router.Public("GET "+healthPath, http.HandlerFunc(healthy))
	for _, part := range options.Parts {
		part.Register(s.router)
	}
	if !s.has(firstPage) {
		s.router.Handle(access.View, firstPage, http.HandlerFunc(welcome))
	}
	var err error
	s.handler, err = s.protect(s.router)
	return s, err
}

// talkPage is the pattern of the page of a person's own conversation.
const talkPage = "GET /talk"

// has reports whether there is a route with a pattern.
func (s *Server) has(pattern string) bool {
	return slices.ContainsFunc(s.router.Routes(), func(route access.Route) bool { return route.Pattern == pattern })
}

// Routes returns the routes of all parts.
func (s *Server) Routes() []access.Route { return s.router.Routes() }

// ServeHTTP implements http.Handler. It does not ask Admit, which concerns connections.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve serves requests on listener until ctx ends. Then it ends the streams, lets short requests finish, and closes
// listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler: s.admittedOnly(s.handler), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return serving },
		ConnContext: s.withAdmission,
		ErrorLog:    slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() {
		if s.options.Certificate == nil {
			ended <- server.Serve(listener)
			return
		}
		server.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.options.Certificate() },
		}
		ended <- server.ServeTLS(listener, "", "")
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the pages: %w", err)
	case <-ctx.Done():
	}
	end() // streams end with their context
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		return server.Close()
	}
	return nil
}

// admissionKey is the context key of a func() error. That function returns the result of Options.Admit for the
// connection.
type admissionKey struct{}

// withAdmission stores the result of Admit in the context of a connection's requests. It calls Admit at the first
// request, so that accepting connections does not wait.
func (s *Server) withAdmission(ctx context.Context, conn net.Conn) context.Context {
	if s.options.Admit == nil {
		return ctx
	}
	return context.WithValue(ctx, admissionKey{}, sync.OnceValue(func() error {
		err := s.options.Admit(conn)
		if err != nil {
			s.options.Logger.Warn("the web server refuses a connection", slog.Any("error", err))
		}
		return err
	}))
}

// admittedOnly refuses the requests of connections that were not admitted.
func (s *Server) admittedOnly(next http.Handler) http.Handler {
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
