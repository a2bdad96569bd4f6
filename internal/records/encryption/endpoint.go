package encryption

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

const (
	// maxBody limits a request's body, in bytes. A page of a history has at most 4 MB, and its JSON is a third larger.
	maxBody = 8 << 20
	// maxRequests limits the number of concurrent requests.
	maxRequests = 16
	// visit is the lifetime of the cookie that a browser gets when it opens the link of LinkTo.
	visit = 12 * time.Hour

	loginPath  = "/login"
	cookieName = "claudeops-codec"
)

// Endpoint is a remote codec for Temporal's Web UI and for Temporal's command-line program, temporal. It encrypts and
// decrypts payloads over HTTP.
type Endpoint struct {
	Keys *Keys
	// Token is the secret that each caller must send, either in the header Authorization: Bearer TOKEN, or with the
	// cookie from the link of LinkTo.
	Token string
	// Origin is the origin of the Web UI whose pages are permitted to call the endpoint, such as
	// https://temporal.example.org. If Origin is empty, no page is permitted to call the endpoint.
	Origin string
	// Secure reports whether browsers reach the endpoint by https. If so, the cookie is for https only.
	Secure bool
}

// LinkTo returns the link with which a person logs a browser in. The argument base is the root URL of the endpoint. The
// link contains the token.
func (e Endpoint) LinkTo(base string) string {
	return strings.TrimRight(base, "/") + loginPath + "?token=" + e.Token
}

// Handler returns the handler of the endpoint.
func (e Endpoint) Handler() http.Handler {
	codec := converter.NewPayloadCodecHTTPHandler(knownOnly{NewCodec(e.Keys)})
	places := make(chan struct{}, maxRequests)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+loginPath, e.login)
	serve := func(w http.ResponseWriter, r *http.Request) {
		if !e.admits(w, r) {
			return
		}
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-r.Context().Done():
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		codec.ServeHTTP(w, r)
	}
	for _, path := range []string{"/encode", "/decode"} {
		mux.HandleFunc("POST "+path, serve)
		mux.HandleFunc("OPTIONS "+path, e.preflight)
	}
	return mux
}

// preflight answers the request with which a browser asks whether a page is permitted to call the endpoint.
func (e Endpoint) preflight(w http.ResponseWriter, r *http.Request) {
	if !e.allowOrigin(w, r) {
		return
	}
	w.Header().Set("Access-Control-Allow-Methods", http.MethodPost)
	w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
	w.Header().Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// admits reports whether a request is permitted to use the keys. If it is not, admits responds to the request with an
// error.
func (e Endpoint) admits(w http.ResponseWriter, r *http.Request) bool {
	if !e.allowOrigin(w, r) {
		return false
	}
	if e.hasToken(r) || e.hasCookie(r, time.Now()) {
		return true
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "This codec requires its token, as the header Authorization: Bearer TOKEN. For a browser, open the "+
		"link that "+
		"`claudeops codec` prints in a terminal.", http.StatusUnauthorized)
	return false
}

// allowOrigin permits the page of the Web UI to read the response. It refuses requests from all other pages.
func (e Endpoint) allowOrigin(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" { // no page of a browser
		return true
	}
	if e.Origin == "" || origin != e.Origin {
		http.Error(w, "This codec is not for pages of this origin. Start it with --origin and the address of the Web "+
			"UI.",
			http.StatusForbidden)
		return false
	}
	w.Header().Set("Access-Control-Allow-Origin", e.Origin)
	w.Header().Set("Access-Control-Allow-Credentials", "true")
	return true
}

func (e Endpoint) hasToken(r *http.Request) bool {
	given, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return isBearer && e.isToken(given)
}

// isToken reports whether given is the token. The time of the comparison does not depend on the token.
func (e Endpoint) isToken(given string) bool {
	want, got := sha256.Sum256([]byte(e.Token)), sha256.Sum256([]byte(given))
	return e.Token != "" && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// login sets the cookie for a browser that has opened the link of LinkTo.
func (e Endpoint) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if !e.isToken(r.URL.Query().Get("token")) {
		http.Error(w, "This link is not valid. `claudeops codec` prints the right one in a terminal.",
			http.StatusUnauthorized)
		return
	}
	end := time.Now().Add(visit)
	until := strconv.FormatInt(end.Unix(), 10)
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // on the loopback address there is no TLS
		Name: cookieName, Value: until + "." + e.sign(until), Path: "/", Expires: end, HttpOnly: true, Secure: e.Secure,
		SameSite: http.SameSiteStrictMode,
	})
	_, _ = w.Write([]byte("The Web UI in this browser can now show encrypted payloads. Reload its page.\n"))
}

func (e Endpoint) hasCookie(r *http.Request, now time.Time) bool {
	cookie, err := r.Cookie(cookieName)
	if err != nil || e.Token == "" {
		return false
	}
	until, signature, _ := strings.Cut(cookie.Value, ".")
	end, err := strconv.ParseInt(until, 10, 64)
	return err == nil && hmac.Equal([]byte(signature), []byte(e.sign(until))) && now.Before(time.Unix(end, 0))
}

// sign returns a signature of the cookie's expiry time. Nobody can derive the token from the signature.
func (e Endpoint) sign(until string) string {
	signer := hmac.New(sha256.New, []byte(e.Token))
	_, _ = fmt.Fprintf(signer, "codec until %s", until)
	return hex.EncodeToString(signer.Sum(nil))
}

// knownOnly is a codec that returns payloads with an unknown key unchanged. Otherwise, one such payload would cause an
// error for all payloads of a request, and a page of the Web UI would show none of them.
type knownOnly struct{ Codec }

// Decode implements converter.PayloadCodec.
func (k knownOnly) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decoded := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		decoded[i] = payload
		if _, known := k.keys.find(string(payload.GetMetadata()[metadataKeyID])); !known {
			continue
		}
		var err error
		if decoded[i], err = k.decode(payload); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}
