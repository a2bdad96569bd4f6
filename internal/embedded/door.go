package embedded

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"
)

const (
	// tokenParameter holds the token in a link to the Web UI.
	tokenParameter = "token"
	// againParameter marks the second of two requests for a page: see retry.
	againParameter = "again"
	// doorOpen is how long a browser is let in after it opened the link. Every server on the loopback address that the
	// browser visits is sent the cookie, whatever its port, so it must not be good for ever.
	doorOpen = 7 * 24 * time.Hour

	apiPrefix  = "/api/"
	healthPath = "/healthz"
)

// Link returns page, a URL of a Web UI, with the token of its server in it. A browser that opens the link is let in from
// then on. Whoever has the link may do everything.
func Link(page, token string) string {
	return page + "?" + url.Values{tokenParameter: {token}}.Encode()
}

// door lets those into the Web UI who show the token: in a link, which leaves a cookie, or in the authorization header. It
// passes their requests on with the token, which no page of the UI ever sees.
type door struct {
	token token
	// port is in the cookie's name, so that two servers on one host do not replace each other's cookies.
	port int
}

// guard returns next behind the door. Without a token everybody may come in. The health check is always open: it says no
// more than an open port does.
func (d door) guard(next http.Handler) http.Handler {
	if d.token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, page := r.URL.Query(), isPage(r)
		switch {
		case r.URL.Path == healthPath:
			next.ServeHTTP(w, r)
		case d.token.isIn(r.Header.Get(authorizationHeader)):
			next.ServeHTTP(w, d.withToken(r.WithContext(context.WithValue(r.Context(), showedTokenKey{}, true))))
		case page && d.token.matches(query.Get(tokenParameter)):
			http.SetCookie(w, d.newCookie(time.Now()))
			redirectToPlain(w, r)
		case !d.hasCookie(r, time.Now()) || isForeign(r):
			d.refuse(w, r)
		case page && (query.Has(againParameter) || query.Has(tokenParameter)):
			redirectToPlain(w, r)
		default:
			next.ServeHTTP(w, d.withToken(r))
		}
	})
}

// isPage reports whether r asks for a page and not for data.
func isPage(r *http.Request) bool {
	return r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, apiPrefix)
}

// isForeign reports whether r is a call of the API that a page of another server has sent. Another port of the same host
// counts as the same site, so the cookie comes with such calls.
func isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	default:
		return !isPage(r)
	}
}

// showedTokenKey marks the context of requests whose header had the token.
type showedTokenKey struct{}

// showedToken reports whether the sender of r knows the token, and not only a cookie that a browser may have added.
func showedToken(r *http.Request) bool {
	showed, _ := r.Context().Value(showedTokenKey{}).(bool)
	return showed
}

// withToken returns r as the frontend wants it. Most calls take the token from the header; the download of a history takes
// it from the context.
func (d door) withToken(r *http.Request) *http.Request {
	passed := r.Clone(metadata.AppendToOutgoingContext(r.Context(), authorizationHeader, d.token.header()))
	passed.Header.Set(authorizationHeader, d.token.header())
	return passed
}

// redirectToPlain sends the browser to the same page without the parameters of the door, so that the token does not stay
// in the address.
func redirectToPlain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	query.Del(tokenParameter)
	query.Del(againParameter)
	page := samePath(r)
	if len(query) > 0 {
		page += "?" + query.Encode()
	}
	noTrace(w)
	w.Header().Set("Location", page)
	w.WriteHeader(http.StatusSeeOther)
}

// samePath returns the path of r. Two slashes in front would be another host.
func samePath(r *http.Request) string { return "/" + strings.TrimLeft(r.URL.EscapedPath(), "/") }

// noTrace keeps an answer out of caches, and its address out of the requests that follow it.
func noTrace(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
}

func (d door) cookieName() string { return fmt.Sprintf("claudeops-%d", d.port) }

// newCookie returns the cookie of a browser that has shown the token. It holds its own end and a signature by the token,
// from which nobody can tell the token.
func (d door) newCookie(now time.Time) *http.Cookie {
	end := now.Add(doorOpen)
	until := strconv.FormatInt(end.Unix(), 10)
	return &http.Cookie{ //nolint:gosec // the loopback address has no TLS, and a browser returns a secure cookie over that only
		Name: d.cookieName(), Value: until + "." + d.sign(until), Path: "/", Expires: end,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

func (d door) hasCookie(r *http.Request, now time.Time) bool {
	cookie, err := r.Cookie(d.cookieName())
	if err != nil {
		return false
	}
	until, signature, _ := strings.Cut(cookie.Value, ".")
	end, err := strconv.ParseInt(until, 10, 64)
	return err == nil && hmac.Equal([]byte(signature), []byte(d.sign(until))) && now.Before(time.Unix(end, 0))
}

func (d door) sign(until string) string {
	signer := hmac.New(sha256.New, []byte(d.token))
	_, _ = fmt.Fprintf(signer, "web ui until %s", until)
	return hex.EncodeToString(signer.Sum(nil))
}

// refuse says where the link is to be had.
func (d door) refuse(w http.ResponseWriter, r *http.Request) {
	noTrace(w)
	w.Header().Set("WWW-Authenticate", bearerScheme)
	if !isPage(r) {
		http.Error(w, "This Web UI wants the token that `starter env` prints, as the header Authorization: Bearer TOKEN.",
			http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	_ = closedPage.Execute(w, retry(r))
}

// retry returns where the closed page goes by itself: to itself, if another site has led here. A browser then leaves the
// cookie out, and sends it when the page asks again.
func retry(r *http.Request) string {
	query := r.URL.Query()
	led := r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate"
	if !led || query.Has(againParameter) || query.Has(tokenParameter) {
		return ""
	}
	query.Set(againParameter, "1")
	return samePath(r) + "?" + query.Encode()
}

var closedPage = template.Must(template.New("closed").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{{- with .}}
<meta http-equiv="refresh" content="0; url={{.}}">
{{- end}}
<title>Claude Ops</title>
</head>
<body>
<h1>This Web UI opens by a link</h1>
<p>Run <code>starter env</code> where <code>starter up</code> runs. It prints the link, and so does <code>starter up</code> in a
terminal.</p>
<p>Set <code>CLAUDEOPS_STATE_DIR</code> first if <code>starter up</code> has a state directory of its own.</p>
</body>
</html>
`))
