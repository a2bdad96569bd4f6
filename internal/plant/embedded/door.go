package embedded

import (
	"net/http"

	"google.golang.org/grpc/metadata"
)

// guarded returns a handler that has each request authenticated, adds the token to it, and passes it on to next. So the
// pages of the UI do not contain the token. If the server has no token, guarded returns next.
func guarded(o Options, next http.Handler) http.Handler {
	if o.Token == "" {
		return next
	}
	guard := o.Guard
	if guard == nil {
		guard = token(o.Token).guard
	}
	return guard(token(o.Token).added(next))
}

// added returns a handler that passes on requests with the token for the frontend. Most API calls pass on the token
// from the header. The download of a history passes on the token from the context.
func (t token) added(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if t.isIn(r.Header.Get(authorizationHeader)) {
			ctx = withShownToken(ctx)
		}
		passed := r.Clone(metadata.AppendToOutgoingContext(ctx, authorizationHeader, t.header()))
		passed.Header.Set(authorizationHeader, t.header())
		next.ServeHTTP(w, passed)
	})
}

// guard passes on only requests with the token in the header, and health checks, which reveal nothing but an open port.
func (t token) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != healthPath && !t.isIn(r.Header.Get(authorizationHeader)) {
			w.Header().Set("WWW-Authenticate", bearerScheme)
			http.Error(w, "This Web UI wants its server's token, as the header Authorization: Bearer TOKEN.",
				http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
