package notify

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// The URL schemes of an Apprise API over HTTP and HTTPS, as Apprise defines them.
const (
	appriseScheme    = "apprise"
	appriseTLSScheme = "apprises"
)

// appriseKey matches the keys that the API accepts for a stored configuration.
var appriseKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// apprise is a stored configuration of an Apprise API, https://github.com/caronc/apprise-api.
type apprise struct {
	endpoint string // without credentials
	user     *url.Userinfo
	tags     string
}

// appriseRequest is the body of POST /notify/KEY.
type appriseRequest struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Type  Level  `json:"type"`
	// Format prevents markup in an agent's text from being rendered.
	Format string `json:"format"`
	Tag    string `json:"tag,omitempty"`
}

// parseApprise parses apprise://[USER[:PASSWORD]@]HOST[:PORT]/[PREFIX/]KEY[?tags=TAG,TAG].
func parseApprise(rawURL string) ([]sender, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("be a URL")
	}
	prefix, key := path.Split(strings.TrimSuffix(parsed.Path, "/"))
	if parsed.Host == "" || !appriseKey.MatchString(key) {
		return nil, fmt.Errorf("be %s://HOST:PORT/KEY, where KEY names a configuration that the Apprise API has "+
			"stored", parsed.Scheme)
	}
	query := parsed.Query()
	api := apprise{user: parsed.User, tags: query.Get("tags")}
	query.Del("tags")
	if len(query) > 0 || parsed.Fragment != "" {
		return nil, fmt.Errorf("have no parameter but tags after %s://HOST:PORT/KEY", parsed.Scheme)
	}
	endpoint := url.URL{Scheme: "http", Host: parsed.Host, Path: path.Join("/", prefix, "notify", key)}
	if parsed.Scheme == appriseTLSScheme {
		endpoint.Scheme = "https"
	}
	api.endpoint = endpoint.String()
	return []sender{post(appriseTook, api.request)}, nil
}

func (a apprise) request(m Message) request {
	r := request{url: a.endpoint, header: map[string]string{"Accept": "application/json"}, body: appriseRequest{
		Title: m.Title, Body: m.whole(), Type: m.Level, Format: "text", Tag: a.tags,
	}}
	if a.user != nil {
		password, _ := a.user.Password()
		r.header["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(a.user.Username()+":"+password))
	}
	return r
}

// appriseTook returns nil if the API has notified somebody.
func appriseTook(a answer) error {
	switch a.status {
	case http.StatusOK:
		return isNoPage(a)
	case http.StatusNoContent:
		return failure{own: "the API has no configuration stored under this key"}
	}
	return unproven(a)
}

// appriseRoom is the size in bytes of a message. The API cuts messages for the services behind it.
const appriseRoom = 32_000
