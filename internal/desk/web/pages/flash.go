package pages

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// flashCookie carries one sentence about what became of a form to the page that follows.
const flashCookie = "claudeops_flash"

// maxFlash limits the sentence, in characters, so that it fits into a cookie.
const maxFlash = 800

// flash says what became of a form.
type flash struct {
	Text string `json:"text"`
	// Bad reports that something did not work.
	Bad bool `json:"bad,omitempty"`
}

// done redirects to the path back, where the page says what became of the form.
func done(w http.ResponseWriter, r *http.Request, back string, said flash) error {
	said.Text = plaintext.Cut(plaintext.Compact(said.Text), maxFlash)
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	setFlash(w, r, base64.RawURLEncoding.EncodeToString(text), 60)
	w.Header().Set("Location", back)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// setFlash sets the cookie for a number of seconds; a negative number deletes it.
func setFlash(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure would lose the cookie where there is no https
		Name: flashCookie, Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}

// takeFlash returns the sentence that the form before has left, once; nil if there is none.
func takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	setFlash(w, r, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	said := &flash{}
	if err != nil || json.Unmarshal(text, said) != nil {
		return nil
	}
	return said
}

// backTo returns the path in the form's field `back` if it is a path of this server. If not, it returns otherwise.
func backTo(r *http.Request, otherwise string) string {
	back := r.PostFormValue("back")
	if !strings.HasPrefix(back, "/") || strings.HasPrefix(back, "//") || strings.ContainsAny(back, "\\\r\n") {
		return otherwise
	}
	return back
}
