package access

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

const (
	loginPath  = "/login"
	logoutPath = "/logout"
	stylePath  = "/login.css"

	// linkParameter is the query parameter with the owner's token in a link.
	linkParameter = "token"
	// againParameter is a query parameter that marks the second request for a page: see reload.
	againParameter = "again"
)

//go:embed login.html login.css
var files embed.FS

var loginPage = template.Must(template.ParseFS(files, "login.html"))

// loginForm is what the login page shows.
type loginForm struct {
	// Next is the page to which the login leads.
	Next string
	// Problem says why the last login failed; empty if there was none.
	Problem string
	// Reload is the address from which the page reloads itself at once; empty if it stays.
	Reload string
	// Local reports that the server has an owner, who opens it by a link.
	Local bool
	// Closed reports that nothing but the link opens the page.
	Closed bool
}

// Link returns page, which must be a URL of the server, with the owner's token. Opening the link logs a browser in.
// Everybody with the link has full access.
func Link(page, secret string) string {
	return page + "?" + url.Values{linkParameter: {secret}}.Encode()
}

// cookieName returns the name of the cookie of a server at a port.
func cookieName(port int) string { return fmt.Sprintf("claudeops-%d", port) }

// Register adds the pages for logging in and out.
func (a *Access) Register(router *Router) {
	router.Public("GET "+loginPath, http.HandlerFunc(a.showLogin))
	router.Public("POST "+loginPath, http.HandlerFunc(a.logIn))
	router.Public("POST "+logoutPath, http.HandlerFunc(a.logOut))
	router.Public("GET "+stylePath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, files, "login.css")
	}))
}

func (a *Access) showLogin(w http.ResponseWriter, r *http.Request) {
	a.writeLogin(w, http.StatusOK, loginForm{Next: pathOf(r.URL.Query().Get("next"))})
}

func (a *Access) logIn(w http.ResponseWriter, r *http.Request) {
	form := loginForm{Next: pathOf(r.PostFormValue("next"))}
	if err := a.failures.look(a.options.Proxy.address(r)); err != nil {
		form.Problem = err.Error()
		a.writeLogin(w, statusOf(err), form)
		return
	}
	token, err := a.login(r, strings.TrimSpace(r.PostFormValue("token")))
	if err != nil {
		form.Problem = err.Error()
		a.writeLogin(w, statusOf(err), form)
		return
	}
	http.SetCookie(w, a.sessions.open(token, a.options.Clock()))
	redirect(w, form.Next)
}

func (a *Access) logOut(w http.ResponseWriter, _ *http.Request) {
	http.SetCookie(w, a.sessions.closed())
	redirect(w, loginPath)
}

func (a *Access) writeLogin(w http.ResponseWriter, status int, form loginForm) {
	form.Local = a.owner != nil
	preventLeaks(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = loginPage.Execute(w, form)
}

// OpenLinks logs a browser in that opens a link with the owner's token, and removes the token from the address.
func (a *Access) OpenLinks(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		_, known := PersonOf(r.Context())
		switch {
		case !isPage(r) || !query.Has(linkParameter) && !query.Has(againParameter):
			next.ServeHTTP(w, r)
		case a.isOwner(query.Get(linkParameter)):
			http.SetCookie(w, a.sessions.open(*a.owner, a.options.Clock()))
			redirect(w, plainAddress(r))
		case known:
			redirect(w, plainAddress(r))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (a *Access) isOwner(secret string) bool {
	if a.owner == nil {
		return false
	}
	_, found := find([]Token{*a.owner}, secret, a.options.Clock())
	return found
}

// AskToLogIn answers a request for a page by somebody who has not logged in.
//
// If a page of another site has led here, the page reloads itself once: see reload. Otherwise AskToLogIn redirects to
// the login page, also where a script of a page asked for a part of it.
func (a *Access) AskToLogIn(w http.ResponseWriter, r *http.Request) {
	if address := reload(r); address != "" {
		a.writeLogin(w, http.StatusUnauthorized, loginForm{Reload: address})
		return
	}
	login := loginPath
	if r.Method == http.MethodGet {
		login += "?" + url.Values{"next": {nextAfterLogin(r)}}.Encode()
	}
	if r.Header.Get("HX-Request") != "" {
		preventLeaks(w)
		w.Header().Set("HX-Redirect", login)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	redirect(w, login)
}

// nextAfterLogin returns the page that a person wanted to see: the page itself, or the one that a script has updated.
func nextAfterLogin(r *http.Request) string {
	if current, err := url.Parse(r.Header.Get("HX-Current-URL")); err == nil && r.Header.Get("HX-Request") != "" &&
		current.Path != "" {
		return current.RequestURI()
	}
	return plainAddress(r)
}

// OwnerOnly passes on the requests of the owner alone, for Temporal's Web UI: it could start and answer everything
// under any name. Its health check is public, because it reveals nothing but an open port.
func (a *Access) OwnerOnly(next http.Handler) http.Handler {
	return a.Identify(a.OpenLinks(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		person, _ := PersonOf(r.Context())
		switch {
		case person.owner || r.URL.Path == "/healthz":
			next.ServeHTTP(w, r)
		case isPage(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			a.writeLogin(w, http.StatusUnauthorized, loginForm{Closed: true, Reload: reload(r)})
		default:
			refuseToken(w, r, errOwnerOnly)
		}
	})))
}

var errOwnerOnly = errors.New("this Web UI wants the token that `claudeops env` prints, as the header Authorization: " +
	"Bearer TOKEN")

// reload returns the address from which a page that refuses r reloads itself; "" if it stays. If a page of another site
// has led to r, the browser omits the cookie from the first request, but sends it with the second.
func reload(r *http.Request) string {
	query := r.URL.Query()
	led := r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate"
	if !led || r.Method != http.MethodGet || query.Has(againParameter) || query.Has(linkParameter) {
		return ""
	}
	query.Set(againParameter, "1")
	return samePath(r) + "?" + query.Encode()
}

// isPage reports whether r asks for a page, not for data.
func isPage(r *http.Request) bool {
	return r.Method == http.MethodGet && !IsForPrograms(r)
}

// IsForPrograms reports whether the path of r belongs to an API.
func IsForPrograms(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, CompletionsPrefix)
}

// plainAddress returns the address of r without the parameters of this package, so that no token stays in it.
func plainAddress(r *http.Request) string {
	query := r.URL.Query()
	query.Del(linkParameter)
	query.Del(againParameter)
	if len(query) == 0 {
		return samePath(r)
	}
	return samePath(r) + "?" + query.Encode()
}

// samePath returns the path of r with exactly one slash at its beginning. Two slashes would name another host.
func samePath(r *http.Request) string { return "/" + strings.TrimLeft(r.URL.EscapedPath(), `/\`) }

// pathOf returns address if it is a path of this server, and the first page otherwise.
func pathOf(address string) string {
	parsed, err := url.Parse(address)
	own := err == nil && parsed.Scheme == "" && parsed.Host == "" && strings.HasPrefix(parsed.Path, "/")
	if !own || strings.HasPrefix(parsed.Path, "//") || strings.ContainsAny(address, "\\\r\n\t") {
		return "/"
	}
	return address
}

// redirect leads a browser to another page of this server.
func redirect(w http.ResponseWriter, address string) {
	preventLeaks(w)
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}

// preventLeaks prevents caches from storing a response. It also prevents later requests from naming the response's
// address in their Referer header.
func preventLeaks(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
}

// refuseToken answers a request whose token is not valid.
func refuseToken(w http.ResponseWriter, r *http.Request, err error) {
	preventLeaks(w)
	w.Header().Set("WWW-Authenticate", "Bearer")
	WriteError(w, r, statusOf(err), err)
}

// statusOf returns the status of an error of this package.
func statusOf(err error) int {
	if _, many := errors.AsType[*TooManyError](err); many {
		return http.StatusTooManyRequests
	}
	return http.StatusUnauthorized
}
