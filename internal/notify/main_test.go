package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestMain prevents the tests from contacting real services. A request to another host fails, with an error that
// contains as much of the URL as possible.
func TestMain(m *testing.M) {
	http.DefaultTransport = onlyLoopback{http.DefaultTransport}
	os.Exit(m.Run())
}

type onlyLoopback struct{ next http.RoundTripper }

func (o onlyLoopback) RoundTrip(request *http.Request) (*http.Response, error) {
	if ip := net.ParseIP(request.URL.Hostname()); ip != nil && ip.IsLoopback() {
		return o.next.RoundTrip(request)
	}
	return nil, errors.Join(fmt.Errorf("cannot reach %s with %v", request.URL, request.Header), net.ErrClosed)
}

// testContext returns a context that ends long before a send times out.
func testContext(t interface{ Context() context.Context }) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), time.Second)
}
