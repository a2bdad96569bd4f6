package api

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
	"reflect"
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
)

// ClientOptions describe a server.
type ClientOptions struct {
	// URL is the address of the server, such as https://ops.example.
	URL string
	// Token is the caller's token.
	Token string
	// Mask masks the secrets in a JSON document before it is sent; nil masks nothing.
	Mask func(document []byte) []byte
	// HTTP sends the requests; nil means a client of its own.
	HTTP *http.Client
}

// Client calls the API of a server. What it returns does the same as its namesake in internal/desk/operations, with the
// same results and errors.
type Client struct {
	options ClientOptions
	base    *url.URL
	http    *http.Client
}

// NewClient returns a client. It contacts nobody yet. The error says what is wrong with the options.
func NewClient(options ClientOptions) (*Client, error) {
	base, err := url.Parse(options.URL)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" || base.RawQuery != "" ||
		base.User != nil {
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
		c.http = &http.Client{CheckRedirect: func(*http.Request,
			[]*http.Request,
		) error {
			return http.ErrUseLastResponse
		}}
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

// call sends what in says to a route, and returns the body of the answer.
func (r route[In, Out]) call(ctx context.Context, c *Client, in In) (out Out, err error) {
	method, pattern, _ := strings.Cut(r.pattern, " ")
	address, body, err := request(pattern, in)
	if err != nil {
		return out, operations.Invalid(err)
	}
	if body != nil && c.options.Mask != nil {
		body = c.options.Mask(body)
	}
	err = c.exchange(ctx, method, prefix+address, body, &out)
	return out, err
}

// request returns the address of a route with the parameters that in has, and the body; nil for none.
func request(pattern string, in any) (address string, body []byte, err error) {
	address = pattern
	query := url.Values{}
	value := reflect.ValueOf(in)
	for _, field := range reflect.VisibleFields(value.Type()) {
		said := value.FieldByIndex(field.Index)
		if name := field.Tag.Get("path"); name != "" {
			address = strings.Replace(address, "{"+name+"}", url.PathEscape(parameter(said)), 1)
		}
		if name := field.Tag.Get("query"); name != "" && !said.IsZero() {
			query.Set(name, parameter(said))
		}
		if field.Name == "Body" && (said.Kind() != reflect.Pointer || !said.IsNil()) {
			body, err = json.Marshal(said.Interface())
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address, body, err
}

// parameter returns a value as it stands in a path or a query.
func parameter(value reflect.Value) string {
	if at, is := reflect.TypeAssert[time.Time](value); is {
		return at.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value.Interface())
}

func (c *Client) exchange(ctx context.Context, method, address string, body []byte, value any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	response, err := c.send(ctx, method, address, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return c.unreachable(err)
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("the server %s answers what this program does not understand; is one of the two older? %w",
			c.base.Host, err)
	}
	return nil
}

// send sends a request. It returns an error for every answer but a success.
func (c *Client) send(ctx context.Context, method, address string, body []byte) (*http.Response, error) {
	whole := strings.TrimSuffix(c.base.String(), "/") + address
	request, err := http.NewRequestWithContext(ctx, method, whole, bytes.NewReader(body))
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

// said is an error in an answer (RFC 9457).
type said struct {
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
	var refused said
	if json.Unmarshal(data, &refused) != nil || refused.Detail == "" {
		return fmt.Errorf("the server %s answers %s: is this the address of Claude Ops?", c.base.Host, response.Status)
	}
	refused.Status = response.StatusCode
	return refused.err()
}

// err returns the error that the server's operation has returned: the same sentence, with the same kind.
func (p said) err() error {
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

// maxList is the largest page.
const maxList = 1_000

// readPages reads the pages of a list until there are limit items; 0 means all. The function read returns how many
// items it has read, and the key of the next page.
func readPages(limit int, read func(Page) (count int, next string, err error)) error {
	page, have := Page{Limit: maxList}, 0
	for {
		if limit > 0 {
			page.Limit = min(limit-have, maxList)
		}
		count, next, err := read(page)
		have += count
		if err != nil || next == "" || limit > 0 && have >= limit {
			return err
		}
		page.After = next
	}
}
