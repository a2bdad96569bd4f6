package access

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// startsEvery and startsBurst limit how many chains one person starts. A person who needs more has a schedule.
	startsEvery, startsBurst = 6 * time.Second, 10
	// failuresEvery and failuresBurst limit the failed logins of one address.
	failuresEvery, failuresBurst = 6 * time.Second, 10
)

// Options describe who may use a server.
type Options struct {
	// Tokens is the file of tokens; nil if the server has none.
	Tokens *TokenFile
	// Owner has the token of a `claudeops up`, and all roles. If its Secret is empty, the server has no owner.
	Owner Owner
	// Proxy is the trusted proxy.
	Proxy Proxy
	// KeyFile is the file of the key that signs cookies. If it is missing, it is created.
	KeyFile string
	// Port is the server's port. It is part of the cookie's name.
	Port int
	// Secure reports that browsers reach the server by https. If so, the cookie is for https only.
	Secure bool
	Logger *slog.Logger
	// Clock returns the current time; nil means time.Now.
	Clock func() time.Time
}

// Owner is the person who runs a `claudeops up`.
type Owner struct {
	Name, Secret string
}

// Access finds out who sends a request: by a token in the header, by the cookie of a browser that has logged in, or by
// the headers of a trusted proxy. A request that none of these names is anonymous.
type Access struct {
	options          Options
	owner            *Token // nil without an owner
	sessions         sessions
	starts, failures *limiter
	complain         func(error)
}

// New returns the access of a server.
func New(options Options) (*Access, error) {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	key, err := sessionKey(options.KeyFile)
	if err != nil {
		return nil, err
	}
	a := &Access{
		options: options, sessions: sessions{cookie: cookieName(options.Port), key: key, secure: options.Secure},
		starts:   newLimiter(startsEvery, startsBurst, options.Clock),
		failures: newLimiter(failuresEvery, failuresBurst, options.Clock),
	}
	a.complain = a.onceEach()
	if options.Owner.Secret != "" {
		a.owner = &Token{
			Name: options.Owner.Name, Roles: []Role{Operate, Alert, Talk},
			Hash: hashOf(options.Owner.Secret), owner: true,
		}
	}
	return a, nil
}

// onceEach returns a function that logs each error once in a row. A file of tokens that cannot be read is read for each
// request.
func (a *Access) onceEach() func(error) {
	var mutex sync.Mutex
	last := ""
	return func(err error) {
		mutex.Lock()
		defer mutex.Unlock()
		if err == nil {
			last = ""
		} else if err.Error() != last {
			last = err.Error()
			a.options.Logger.Error("nobody can log in by a token of the file", slog.Any("error", err))
		}
	}
}

// tokens returns the tokens that are valid. If the file cannot be used, only the owner's is.
func (a *Access) tokens() []Token {
	var all []Token
	if a.options.Tokens != nil {
		listed, err := a.options.Tokens.List()
		a.complain(err)
		if err == nil {
			all = listed
		}
	}
	if a.owner != nil {
		all = append(all, *a.owner)
	}
	return all
}

// errWrongToken is the error of a request with a token that is not valid.
var errWrongToken = errors.New("this token is not valid: it was revoked, has expired, or belongs to another server")

// identify returns the person who sends r; false if nobody has logged in. It returns an error if the header contains a
// token that is not valid, or if the address has failed too often.
func (a *Access) identify(r *http.Request) (Person, bool, error) {
	if person, named := a.options.Proxy.person(r); named {
		return person, true, nil
	}
	if secret, shown := bearer(r); shown {
		token, err := a.login(r, secret)
		return token.Person(), err == nil, err
	}
	token, found := a.sessions.token(r, a.tokens(), a.options.Clock())
	return token.Person(), found, nil
}

// login returns the token that secret is. It counts the failures of the client's address.
func (a *Access) login(r *http.Request, secret string) (Token, error) {
	token, found := find(a.tokens(), secret, a.options.Clock())
	if found {
		return token, nil
	}
	if err := a.failures.take(a.options.Proxy.address(r)); err != nil {
		return Token{}, err
	}
	return Token{}, errWrongToken
}

// bearer returns the token in the header of r.
func bearer(r *http.Request) (string, bool) {
	scheme, secret, found := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(secret), found && strings.EqualFold(scheme, "Bearer")
}

// stillKey is the context key of a func() bool, which reports whether the sender of a request could send it again.
type stillKey struct{}

// StillKnown reports whether the login with which a request was sent is still valid: a token may have been revoked
// since. People of a trusted proxy are always known. Long responses ask it from time to time.
func StillKnown(ctx context.Context) bool {
	still, set := ctx.Value(stillKey{}).(func() bool)
	return !set || still()
}

// still returns the function for StillKnown. It counts no failures.
func (a *Access) still(r *http.Request) func() bool {
	if _, named := a.options.Proxy.person(r); named {
		return func() bool { return true }
	}
	secret, shown := bearer(r)
	return func() (found bool) {
		if shown {
			_, found = find(a.tokens(), secret, a.options.Clock())
		} else {
			_, found = a.sessions.token(r, a.tokens(), a.options.Clock())
		}
		return found
	}
}

// Identify adds the person who sends a request to its context. It removes the headers of the trusted proxy, whoever
// sent them. It refuses a wrong token, and data that a page of another site asks for with the cookie of this one.
func (a *Access) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		person, known, err := a.identify(r)
		still := a.still(r)
		a.options.Proxy.strip(r)
		if err != nil {
			refuseToken(w, r, err)
			return
		}
		ctx := context.WithValue(r.Context(), startsKey{}, a.starts)
		if known && !isFromOtherSite(r) {
			ctx = context.WithValue(WithPerson(ctx, person), stillKey{}, still)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// isFromOtherSite reports whether a page of another site sends r in the background. If only the port of that site
// differs, browsers add the cookie to such requests, because they treat all ports of a host as the same site. A link
// that a person follows is no such request.
func isFromOtherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	default:
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method != http.MethodGet
	}
}
