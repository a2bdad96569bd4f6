package notify

import (
	"bytes"
	"context"
	"encoding/json"
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
func parseApprise(rawURL string) (func(context.Context, Message) error, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("be a URL")
	}
	prefix, key := path.Split(strings.TrimSuffix(parsed.Path, "/"))
	if parsed.Host == "" || !appriseKey.MatchString(key) {
		return nil, fmt.Errorf("be %s://HOST:PORT/KEY, where KEY names a configuration that the Apprise API has stored", parsed.Scheme)
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
	return api.send, nil
}

// appriseClient does not follow redirects, because a redirected POST becomes a GET, which notifies nobody.
var appriseClient = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (a apprise) send(ctx context.Context, m Message) error {
	body, err := json.Marshal(appriseRequest{Title: m.Title, Body: m.Text, Type: m.Level, Format: "text", Tag: a.tags})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if a.user != nil {
		password, _ := a.user.Password()
		request.SetBasicAuth(a.user.Username(), password)
	}
	response, err := appriseClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // the status suffices
	return appriseError(response.StatusCode)
}

// appriseError returns the error for a status. Only status 200 means that somebody was notified.
func appriseError(status int) error {
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusNoContent:
		return errors.New("the API has no configuration stored under this key")
	case http.StatusFailedDependency:
		return errors.New("the API could not notify all that its configuration names")
	default:
		return fmt.Errorf("the API answered %d %s", status, http.StatusText(status))
	}
}
