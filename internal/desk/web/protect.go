package web

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/web/access"
)

const (
	healthPath = "/healthz"
	firstPage  = "GET /{$}"
)

// contentPolicy permits pages nothing but files and requests of this server. There are no inline scripts and styles, so
// that none can be smuggled in.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src " +
	"'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// protect wraps the routes with what holds for every request.
func (s *Server) protect(routes http.Handler) (http.Handler, error) {
	origins := http.NewCrossOriginProtection()
	for _, origin := range s.options.Origins {
		if err := origins.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("the web server's own address: %w", err)
		}
	}
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, http.StatusForbidden, errors.New("a page of another site sent this, so nothing was done"))
	}))
	handler := s.options.Access.OpenLinks(routes)
	handler = s.options.Access.Identify(handler)
	handler = origins.Handler(handler)
	handler = s.limitBody(handler)
	handler = s.knownHostsOnly(handler)
	handler = withHeaders(handler)
	return s.survive(handler), nil
}

// withHeaders sets the headers of every response. A handler can replace them: files that never change may be cached.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// knownHostsOnly refuses requests for other host names than the server's own. Health checks call it by any name.
func (s *Server) knownHostsOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		own := slices.ContainsFunc(s.options.Hosts, func(own string) bool { return strings.EqualFold(own, host) })
		if !own && r.URL.Path != healthPath {
			s.fail(w, r, http.StatusMisdirectedRequest,
				errors.New("this server does not answer to that host name: set CLAUDEOPS_WEB_URL to the address by "+
					"which people reach it"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limitBody limits the size of a request's body, and the time in which it arrives.
func (s *Server) limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			limit := s.options.MaxBody
			if strings.HasPrefix(r.URL.Path, access.CompletionsPrefix) {
				limit = max(limit, maxCompletionBody)
			}
			if strings.HasPrefix(r.URL.Path, access.HooksPrefix) {
				limit = max(limit, maxHookBody)
			}
			r.Body = http.MaxBytesReader(w, newTimedBody(w, r.Body), limit)
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody is a body that must arrive within bodyTimeout. The deadline ends with the body, because one that passes
// while the handler works would cancel the handler's context.
type timedBody struct {
	io.ReadCloser

	connection *http.ResponseController
}

func newTimedBody(w http.ResponseWriter, body io.ReadCloser) timedBody {
	b := timedBody{body, http.NewResponseController(w)}
	b.setDeadline(time.Now().Add(bodyTimeout))
	return b
}

// Read implements io.Reader.
func (b timedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil {
		b.setDeadline(time.Time{})
	}
	return n, err
}

// setDeadline sets the deadline of the connection. A response writer of a test has no connection, and nothing to limit.
func (b timedBody) setDeadline(at time.Time) { _ = b.connection.SetReadDeadline(at) }

// survive answers a request whose handler panics, and logs the panic.
func (s *Server) survive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch reason := recover(); reason {
			case nil:
			case http.ErrAbortHandler:
				panic(reason)
			default:
				s.options.Logger.Error("a request failed by a defect of the program", slog.String("method", r.Method),
					slog.String("path", r.URL.Path), slog.Any("panic", reason),
					slog.String("stack", string(debug.Stack())))
				s.fail(w, r, http.StatusInternalServerError,
					errors.New("something in the server is broken; its log says what"))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// refuse answers a request whose person lacks the role of the route.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, known bool) {
	person, _ := access.PersonOf(r.Context())
	switch {
	case known && r.Method == http.MethodGet && r.URL.Path == "/" && person.May(access.Talk) && s.has(talkPage):
		http.Redirect(w, r, "/talk", http.StatusSeeOther) // the only page for a person who may only talk
	case known:
		s.fail(w, r, http.StatusForbidden,
			errors.New("your role does not permit this; ask the operator for a token with another role"))
	case access.IsForPrograms(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		s.fail(w, r, http.StatusUnauthorized,
			errors.New("log in first: send a token in the header Authorization: Bearer TOKEN"))
	default:
		s.options.Access.AskToLogIn(w, r)
	}
}

// fail answers with an error: problem details for programs, a page for people.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, status int, err error) {
	if access.IsForPrograms(r) {
		access.WriteError(w, r, status, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = failurePage.Execute(w, struct{ Title, Problem string }{http.StatusText(status), err.Error()})
}

var failurePage = template.Must(template.New("failure").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}} · Claude Ops</title>
<link rel="stylesheet" href="/login.css">
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{.Problem}}.</p>
<p><a href="/">To the first page</a></p>
</main>
</body>
</html>
`))

// healthy answers the health check, which reveals nothing but an open port.
func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

// welcome is the first page of a server without pages.
func welcome(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("Claude Ops\n"))
}
