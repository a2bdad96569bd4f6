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
	// tokenParameter is the query parameter with the token in a link to the Web UI.
	tokenParameter = "token"
	// againParameter is a query parameter that marks the second request for a page: see retry.
	againParameter = "again"
	// doorOpen is the lifetime of the cookie that the link sets. The browser sends the cookie to every server on the
	// loopback address, whatever its port. The limited lifetime reduces the risk that another server uses the cookie.
	doorOpen = 7 * 24 * time.Hour

	apiPrefix  = "/api/"
	healthPath = "/healthz"
)

// Link returns page, which must be a URL of the server's Web UI, with the server's token added. Opening the link gives
// a browser access to the Web UI. Everybody with the link has full access, because the link contains the token.
func Link(page, token string) string {
	return page + "?" + url.Values{tokenParameter: {token}}.Encode()
}

// door authenticates requests to the Web UI. It accepts the token in three places: in a link, in the authorization
// header, and in the cookie that opening the link sets. door adds the token to the requests that it passes on. So the
// pages of the UI do not contain the token.
type door struct {
	token token
	// port is part of the cookie's name, so that two servers on one host do not overwrite each other's cookies.
	port int
}

// guard returns a handler that authenticates each request and then passes the request to next. If the server has no
// token, guard returns next. The health check needs no token, because it reveals nothing but an open port.
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
		case !d.hasCookie(r, time.Now()) || isCrossOrigin(r):
			d.refuse(w, r)
		case page && (query.Has(againParameter) || query.Has(tokenParameter)):
			redirectToPlain(w, r)
		default:
			next.ServeHTTP(w, d.withToken(r))
		}
	})
}

// isPage reports whether r requests a page, not data.
func isPage(r *http.Request) bool {
	return r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, apiPrefix)
}

// isCrossOrigin reports whether r is an API call sent by a page of another server. If only the port of that server
// differs, browsers add the cookie to such calls, because they treat all ports of a host as the same site.
func isCrossOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	default:
		return !isPage(r)
	}
}

// showedTokenKey marks the context of requests with the token in their header.
type showedTokenKey struct{}

// showedToken reports whether the header of r contains the token. A cookie does not count, because a browser can add
// the cookie to requests that another page sends.
func showedToken(r *http.Request) bool {
	showed, _ := r.Context().Value(showedTokenKey{}).(bool)
	return showed
}

// withToken returns r with the token for the frontend. Most API calls pass on the token from the header. The download
// of a history passes on the token from the context.
func (d door) withToken(r *http.Request) *http.Request {
	passed := r.Clone(metadata.AppendToOutgoingContext(r.Context(), authorizationHeader, d.token.header()))
	passed.Header.Set(authorizationHeader, d.token.header())
	return passed
}

// redirectToPlain redirects the browser to the same page without tokenParameter and againParameter, so that the token
// does not stay in the address.
func redirectToPlain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	query.Del(tokenParameter)
	query.Del(againParameter)
	page := samePath(r)
	if len(query) > 0 {
		page += "?" + query.Encode()
	}
	preventLeaks(w)
	w.Header().Set("Location", page)
	w.WriteHeader(http.StatusSeeOther)
}

// samePath returns the path of r with exactly one slash at its beginning. Two slashes would name another host.
func samePath(r *http.Request) string { return "/" + strings.TrimLeft(r.URL.EscapedPath(), "/") }

// preventLeaks prevents caches from storing a response. It also prevents later requests from naming the response's
// address in their Referer header.
func preventLeaks(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
}

func (d door) cookieName() string { return fmt.Sprintf("claudeops-%d", d.port) }

// newCookie returns the cookie for a browser that has opened the link. The cookie contains its expiry time, and a
// signature made with the token. Nobody can derive the token from the cookie.
func (d door) newCookie(now time.Time) *http.Cookie {
	end := now.Add(doorOpen)
	until := strconv.FormatInt(end.Unix(), 10)
	return &http.Cookie{ //nolint:gosec // the loopback address has no TLS, and browsers return a secure cookie over TLS only
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

// refuse responds with an explanation that says where to get the link.
func (d door) refuse(w http.ResponseWriter, r *http.Request) {
	preventLeaks(w)
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

// retry returns the address from which the page that explains a refusal reloads itself; "" means no reload. If a page
// of another site opened the Web UI, the browser omits the cookie from the first request, but sends the cookie with the
// second. So in that case the page reloads itself once.
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
