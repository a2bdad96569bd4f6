// Package apiclient calls the API of a server (internal/desk/web/api). Its types do the same as their namesakes in
// internal/desk/operations, with the same results and errors.
package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// patience limits the time for one request. A list of gates asks many chains.
	patience = 90 * time.Second
	// maxAnswer limits an answer, in bytes. A chain of days has a few megabytes.
	maxAnswer = 256 << 20
	// pageSize is the number of items of a page.
	pageSize = "1000"
)

// Options describe a server.
type Options struct {
	// URL is the address of the server, such as https://ops.example.
	URL string
	// Token is the caller's token.
	Token string
	// Mask masks the secrets in a JSON document before it is sent; nil masks nothing.
	Mask func(document []byte) []byte
	// HTTP sends the requests; nil means a client of its own.
	HTTP *http.Client
}

// Client calls the API of a server.
type Client struct {
	options Options
	base    *url.URL
	http    *http.Client
}

// New returns a client. It contacts nobody yet. The error says what is wrong with the options.
func New(options Options) (*Client, error) {
	base, err := url.Parse(options.URL)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" || base.RawQuery != "" || base.User != nil {
		return nil, operations.Invalid(errors.New("the server must be an address such as https://ops.example"))
	}
	if base.Scheme == "http" && !isLoopback(base.Hostname()) {
		return nil, operations.Invalid(fmt.Errorf(
			"the server %s must begin with https://: by http, others on the way can read the token", base.Host))
	}
	if options.Token == "" {
		return nil, operations.Invalid(errors.New(
			"the server needs a token: set CLAUDEOPS_TOKEN, or CLAUDEOPS_TOKEN_FILE to a file that holds it"))
	}
	c := &Client{options: options, base: base, http: options.HTTP}
	if c.http == nil {
		c.http = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return c, nil
}

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// Chains does through the API what operations.Chains does.
func (c *Client) Chains() Chains { return Chains{c} }

// Plans does through the API what operations.Plans does.
func (c *Client) Plans() Plans { return Plans{c} }

// Gates does through the API what operations.Gates does.
func (c *Client) Gates() Gates { return Gates{c} }

// Incidents does through the API what operations.Incidents does.
func (c *Client) Incidents() Incidents { return Incidents{c} }

// Schedules does through the API what operations.Schedules does.
func (c *Client) Schedules() Schedules { return Schedules{c} }

// Conversations does through the API what operations.Conversations does.
func (c *Client) Conversations() Conversations { return Conversations{c} }

// Memories does through the API what operations.Memories does.
func (c *Client) Memories() Memories { return Memories{c} }

// place is a path of the API, with a query. Its elements are escaped.
type place struct {
	elements []string
	query    url.Values
}

func at(elements ...string) place { return place{elements: elements} }

// url returns the address of a place.
func (c *Client) url(p place) string {
	escaped := make([]string, len(p.elements))
	for i, element := range p.elements {
		escaped[i] = url.PathEscape(element)
	}
	address := strings.TrimSuffix(c.base.String(), "/") + "/api/v1/" + strings.Join(escaped, "/")
	if len(p.query) > 0 {
		address += "?" + p.query.Encode()
	}
	return address
}

// get reads a place, and decodes the answer into the value.
func (c *Client) get(ctx context.Context, p place, value any) error {
	return c.exchange(ctx, http.MethodGet, p, nil, value)
}

// post sends a document to a place, and decodes the answer into the value, which can be nil.
func (c *Client) post(ctx context.Context, p place, document, value any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return operations.Invalid(err)
	}
	if c.options.Mask != nil {
		body = c.options.Mask(body)
	}
	return c.exchange(ctx, http.MethodPost, p, body, value)
}

func (c *Client) exchange(ctx context.Context, method string, p place, body []byte, value any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	response, err := c.send(ctx, method, p, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return c.unreachable(err)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("the server %s answers what this program does not understand; is one of the two older? %w", c.base.Host, err)
	}
	return nil
}

// send sends a request. It returns an error for every answer but a success.
func (c *Client) send(ctx context.Context, method string, p place, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url(p), bytes.NewReader(body))
	if err != nil {
		return nil, operations.Invalid(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.options.Token)
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode >= http.StatusOK && response.StatusCode < http.StatusMultipleChoices {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	return nil, c.refusal(response)
}

// unreachable says that the server did not answer.
func (c *Client) unreachable(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return fmt.Errorf("the server %s cannot be reached: %w; check --server and CLAUDEOPS_SERVER", c.base.Host, err)
}

// problem is an error in an answer (RFC 9457).
type problem struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string `json:"message"`
		Location string `json:"location"`
	} `json:"errors"`
}

// maxProblem limits an error of a server, in characters.
const maxProblem = 2_000

// refusal returns the error in an answer.
func (c *Client) refusal(response *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return c.unreachable(err)
	}
	var said problem
	if json.Unmarshal(data, &said) != nil || said.Detail == "" {
		return fmt.Errorf("the server %s answers %s: is this the address of Claude Ops?", c.base.Host, response.Status)
	}
	said.Status = response.StatusCode
	return said.err()
}

// err returns the error that the server's operation has returned: the same sentence, with the same kind.
func (p problem) err() error {
	says := plaintext.Cut(plaintext.Line(p.Detail), maxProblem)
	err := errors.New(says)
	for _, detail := range p.Errors {
		if detail.Location+" "+detail.Message == p.Detail { // an operation's FieldError
			err = &operations.FieldError{Field: detail.Location, Problem: detail.Message}
		} else {
			err = fmt.Errorf("%w: %s: %s", err, plaintext.Line(detail.Location), plaintext.Line(detail.Message))
		}
	}
	return operations.WithKind(kindOf(p.Status), err)
}

// kindOf returns the kind of an error with this status.
func kindOf(status int) operations.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusBadRequest,
		http.StatusRequestEntityTooLarge, http.StatusMisdirectedRequest:
		return operations.KindInvalid
	case http.StatusNotFound:
		return operations.KindNotFound
	case http.StatusConflict:
		return operations.KindConflict
	default:
		return operations.KindFailure
	}
}

// readPages reads all pages of a list. The function read reads one page into place, and returns the key of the next.
func readPages(query url.Values, read func(url.Values) (next string, err error)) error {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", pageSize)
	for {
		next, err := read(query)
		if err != nil || next == "" {
			return err
		}
		query.Set("after", next)
	}
}
