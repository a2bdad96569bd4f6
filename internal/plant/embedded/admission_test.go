package embedded

import (
	"errors"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestFrontendAdmits checks that Admit is called once for each connection that shows the token, not for each call. It
// also checks that nothing is remembered of connections that are gone.
func TestFrontendAdmits(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := startServer(t, Options{Token: testToken, NoUI: true, Admit: func(c Connection) error {
		if asked.Add(1) == 1 { // startServer's own client
			return nil
		}
		return errors.New(c.RemoteAddr().Network() + " is not welcome")
	}})
	before := asked.Load()
	require.EqualValues(t, 1, before)
	refused, stranger := plainConnection(t, server.Address()), plainConnection(t, server.Address())
	for range 2 {
		_, err := workflowservice.NewWorkflowServiceClient(refused).GetSystemInfo(
			withAuthorization(testContext(t), "Bearer "+testToken), &workflowservice.GetSystemInfoRequest{})
		require.Equal(t, codes.PermissionDenied, status.Code(err))
		require.Equal(t, "tcp is not welcome", deniedReason(serviceerror.FromStatus(status.Convert(err))))
		_, err = workflowservice.NewWorkflowServiceClient(stranger).GetSystemInfo(testContext(t), &workflowservice.GetSystemInfoRequest{})
		require.Equal(t, tokenWanted, deniedReason(serviceerror.FromStatus(status.Convert(err))))
	}
	require.Equal(t, before+1, asked.Load(), "once for the connection, and not for the stranger's")
}

func TestAdmissionForgets(t *testing.T) {
	t.Parallel()
	a := newAdmission(func(Connection) error { return nil }, slog.New(slog.DiscardHandler))
	remote := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	require.NoError(t, a.verdict(remote, remote)())
	require.Len(t, a.verdicts, 1)
	runtime.KeepAlive(remote)
	require.Eventually(t, func() bool {
		runtime.GC()
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.verdicts) == 0
	}, time.Minute, time.Millisecond)
}
