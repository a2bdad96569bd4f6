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

// TestMain keeps the tests from talking to the services themselves. What is not on this host
// cannot be reached, and the error says so in the most telling way that there is.
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

// testContext ends long before a send is given up by itself.
func testContext(t interface{ Context() context.Context }) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), time.Second)
}
