package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"
)

// TestMain prevents the tests from contacting real services.
func TestMain(m *testing.M) {
	http.DefaultTransport = onlyLoopback{http.DefaultTransport}
	os.Exit(m.Run())
}

// played maps the hosts of services to the addresses of servers that play them in a test.
var played sync.Map

// onlyLoopback sends requests for a played host to the server that plays it. A request to another host fails, with an
// error that contains as much of the URL as possible.
type onlyLoopback struct{ next http.RoundTripper }

func (o onlyLoopback) RoundTrip(request *http.Request) (*http.Response, error) {
	if address, ok := played.Load(request.URL.Host); ok {
		request = request.Clone(request.Context())
		request.URL.Scheme, request.URL.Host = "http", address.(string)
		return o.next.RoundTrip(request)
	}
	if ip := net.ParseIP(request.URL.Hostname()); ip != nil && ip.IsLoopback() {
		return o.next.RoundTrip(request)
	}
	return nil, errors.Join(fmt.Errorf("cannot reach %s with %v", request.URL, request.Header), net.ErrClosed)
}

// testContext returns a context that ends long before a send times out.
func testContext(t interface{ Context() context.Context }) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), time.Second)
}
