package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sessionLength is the lifetime of the cookie of a browser that has logged in. Who is on call for a week logs in once.
const sessionLength = 7 * 24 * time.Hour

// sessions makes and checks the cookies of browsers. A cookie contains the hash of its token in part, the time of its
// end, and a signature. It is valid as long as its token is, and nobody can derive the token from it.
type sessions struct {
	// cookie is the name of the cookie. It contains the port, so that two servers on one host do not overwrite each
	// other's cookies: browsers send a cookie to every port of a host.
	cookie string
	key    []byte
	secure bool
}

// open returns the cookie for a browser that has shown token.
func (s sessions) open(token Token, now time.Time) *http.Cookie {
	end := now.Add(sessionLength)
	if !token.ExpiresAt.IsZero() && token.ExpiresAt.Before(end) {
		end = token.ExpiresAt
	}
	until := strconv.FormatInt(end.Unix(), 10)
	return &http.Cookie{ //nolint:gosec // the loopback address has no TLS, and browsers return a secure cookie over TLS only
		Name: s.cookie, Value: strings.Join([]string{token.id(), until, s.sign(token, until)}, "."), Path: "/",
		Expires: end, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteStrictMode,
	}
}

// closed returns the cookie that ends a session.
func (s sessions) closed() *http.Cookie {
	return &http.Cookie{ //nolint:gosec // as in open
		Name: s.cookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteStrictMode,
	}
}

// id identifies a token in a cookie.
func (t Token) id() string { return t.Hash[:16] }

func (s sessions) sign(token Token, until string) string {
	signer := hmac.New(sha256.New, s.key)
	_, _ = fmt.Fprintf(signer, "session of %s until %s", token.Hash, until)
	return hex.EncodeToString(signer.Sum(nil))
}

// token returns the token whose session the cookie of r continues.
func (s sessions) token(r *http.Request, tokens []Token, now time.Time) (Token, bool) {
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return Token{}, false
	}
	parts := strings.Split(cookie.Value, ".")
	if len(parts) != 3 {
		return Token{}, false
	}
	end, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || !now.Before(time.Unix(end, 0)) {
		return Token{}, false
	}
	for _, token := range tokens {
		if token.id() == parts[0] && token.valid(now) && hmac.Equal([]byte(parts[2]), []byte(s.sign(token, parts[1]))) {
			return token, true
		}
	}
	return Token{}, false
}

// sessionKey returns the key in a file that signs cookies. If the file is missing, sessionKey creates it. Without the
// file, browsers log in again.
func sessionKey(name string) ([]byte, error) {
	content, err := os.ReadFile(name) //nolint:gosec // of our own directory
	if errors.Is(err, fs.ErrNotExist) {
		content = []byte(newSecret())
		if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
			err = replaceFile(name, content)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the key of the sessions: %w", err)
	}
	if len(content) < tokenBytes {
		return nil, fmt.Errorf("the key of the sessions %s is damaged; remove it and start again, which makes one",
			name)
	}
	return content, nil
}
