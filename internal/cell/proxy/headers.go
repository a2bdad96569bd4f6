package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// requestHeaders lists the headers that the measured versions of the CLI send, except credentials. A name that ends in
// "-" is a prefix. Other headers would reach a gateway of the operator, where they could choose another upstream or
// account.
var requestHeaders = []string{
	"Accept", "Content-Type", "User-Agent", "Anthropic-Beta", "Anthropic-Version",
	"Anthropic-Dangerous-Direct-Browser-Access", "X-App", "X-Client-Request-Id", "X-Claude-", "X-Stainless-",
}

// answerHeaders lists the headers of an answer that the measured versions of the CLI use. Others, such as cookies and
// the name of the account, are for the worker only.
var answerHeaders = []string{
	"Content-Type", "Content-Length", "Content-Encoding", "Date", "Request-Id", "Retry-After", "Retry-After-Ms",
	"X-Should-Retry", "Anthropic-Ratelimit-", "Anthropic-Thinking-Prefix-Mismatch",
}

// keep removes the headers that are not listed.
func keep(header http.Header, listed []string) {
	for name := range header {
		if !slices.ContainsFunc(listed, func(one string) bool {
			return name == one || strings.HasSuffix(one, "-") && strings.HasPrefix(name, one)
		}) {
			delete(header, name)
		}
	}
}

// finalAnswer passes on the final answer of the upstream, and none of those before it (1xx), whose headers are not
// checked.
type finalAnswer struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w finalAnswer) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap serves http.ResponseController.
func (w finalAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// withoutTrailers sends requests, and leaves out what follows the body of an answer.
type withoutTrailers struct{ transport http.RoundTripper }

// RoundTrip implements http.RoundTripper. The reader of the body sets the trailers of the original.
func (w withoutTrailers) RoundTrip(request *http.Request) (*http.Response, error) {
	transport := w.transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	copied := *answer
	copied.Trailer = nil
	return &copied, nil
}
