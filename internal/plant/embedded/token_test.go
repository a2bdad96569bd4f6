package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/batch/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/server/api/adminservice/v1"
	"go.temporal.io/server/api/historyservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// testToken is the token of the tests' servers.
const testToken = "9f86d081884c7d659a2feaa0c55ad015"

// TestTokenIsAskedFor calls every service of the frontend without a token, with a wrong one and with the right
// one.
func TestTokenIsAskedFor(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	server := startServer(t, Options{
		Token: testToken, NoUI: true, LogLevel: slog.LevelDebug,
		Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	conn := plainConnection(t, server.Address())
	calls := map[string]func(context.Context) error{
		"look": func(ctx context.Context) error {
			_, err := workflowservice.NewWorkflowServiceClient(conn).GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
			return err
		},
		"start": func(ctx context.Context) error {
			_, err := workflowservice.NewWorkflowServiceClient(conn).StartWorkflowExecution(ctx, startRequest("by-grpc"))
			return err
		},
		"operate": func(ctx context.Context) error {
			_, err := operatorservice.NewOperatorServiceClient(conn).ListSearchAttributes(ctx,
				&operatorservice.ListSearchAttributesRequest{Namespace: DefaultNamespace})
			return err
		},
		"administer": func(ctx context.Context) error {
			_, err := adminservice.NewAdminServiceClient(conn).DescribeCluster(ctx, &adminservice.DescribeClusterRequest{})
			return err
		},
	}
	for name, call := range calls {
		for given, header := range map[string]string{
			"nothing": "", "a wrong one": "Bearer 0000d081884c7d659a2feaa0c55ad015", "a part of it": "Bearer " + testToken[:31],
			"no bearer": testToken, "another scheme": "Basic " + testToken, "none behind the word": "Bearer", "nothing behind the word": "Bearer ",
		} {
			err := call(withAuthorization(testContext(t), header))
			require.Equal(t, codes.PermissionDenied, status.Code(err), "%s with %s: %v", name, given, err)
		}
	}
	_, err := healthpb.NewHealthClient(conn).Check(testContext(t), &healthpb.HealthCheckRequest{})
	require.NoError(t, err, "the health check is open")

	for _, header := range []string{"Bearer " + testToken, "bearer " + testToken} {
		for name, call := range calls {
			err := call(withAuthorization(testContext(t), header))
			require.NotEqual(t, codes.PermissionDenied, status.Code(err), "%s: %v", name, err)
		}
	}
	require.NoError(t, server.Stop())
	require.NotContains(t, logged.String(), testToken)
}

// TestRefusedClientHearsWhatToDo connects like a worker.
func TestRefusedClientHearsWhatToDo(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{Token: testToken, NoUI: true})
	for _, given := range []token{"", "wrong"} {
		_, err := client.DialContext(testContext(t), given.clientOptions(client.Options{
			HostPort: server.Address(), Logger: slog.New(slog.DiscardHandler),
		}))
		require.ErrorContains(t, err, "Request unauthorized")
		require.Equal(t, tokenWanted, deniedReason(err))
	}
}

// TestServicesAreClosed sends requests that the frontend refuses to the services behind it: without TLS, with
// TLS, and with a certificate of its own.
func TestServicesAreClosed(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{Token: testToken, NoUI: true})
	stranger, err := selfSigned()
	require.NoError(t, err)
	credulous := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // an attacker does not verify the server
	known := credulous.Clone()
	known.Certificates = []tls.Certificate{stranger}
	ways := map[string]credentials.TransportCredentials{
		"in the clear":                  insecure.NewCredentials(),
		"without a certificate":         credentials.NewTLS(credulous),
		"with a certificate of its own": credentials.NewTLS(known),
	}
	services := slices.DeleteFunc(server.Ports(), func(port int) bool { return strings.HasSuffix(server.Address(), ":"+strconv.Itoa(port)) })
	require.Len(t, services, len(serviceNames())-1)
	for way, given := range ways {
		for _, port := range services {
			conn, err := grpc.NewClient(hostPort(port), grpc.WithTransportCredentials(given))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, conn.Close()) })
			for _, call := range []func(context.Context) error{
				func(ctx context.Context) error {
					_, err := historyservice.NewHistoryServiceClient(conn).StartWorkflowExecution(ctx,
						&historyservice.StartWorkflowExecutionRequest{StartRequest: startRequest("by-history")})
					return err
				},
				func(ctx context.Context) error {
					_, err := workflowservice.NewWorkflowServiceClient(conn).StartWorkflowExecution(ctx, startRequest("by-internal-frontend"))
					return err
				},
			} {
				require.Equal(t, codes.Unavailable, status.Code(call(testContext(t))), "port %d %s", port, way)
			}
		}
	}
}

// TestServerNeedsNoTokenOfItsOwn lets the server's own worker change a workflow through calls of a frontend.
func TestServerNeedsNoTokenOfItsOwn(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{Token: testToken, NoUI: true})
	c := dialWith(t, server.Address(), testToken)
	startWorker(t, c)
	run, err := c.ExecuteWorkflow(testContext(t), onTestQueue("in-a-batch"), waitForName)
	require.NoError(t, err)
	const inBatch = "WorkflowId = 'in-a-batch'"
	require.Eventually(t, func() bool { return foundRun(t, c, inBatch) != "" }, testTimeout, 20*time.Millisecond)
	_, err = c.WorkflowService().StartBatchOperation(testContext(t), &workflowservice.StartBatchOperationRequest{
		Namespace: DefaultNamespace, JobId: "batch", Reason: "test", VisibilityQuery: inBatch,
		Operation: &workflowservice.StartBatchOperationRequest_SignalOperation{SignalOperation: &batch.BatchOperationSignal{
			Signal: "name", Input: payloads(t, "Ada"),
		}},
	})
	require.NoError(t, err)
	requireName(t, run)
}

// startRequest returns the request that starts a workflow.
func startRequest(id string) *workflowservice.StartWorkflowExecutionRequest {
	return &workflowservice.StartWorkflowExecutionRequest{
		Namespace: DefaultNamespace, WorkflowId: id, RequestId: id,
		WorkflowType: &commonpb.WorkflowType{Name: "waitForName"},
		TaskQueue:    &taskqueue.TaskQueue{Name: testQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
	}
}

// plainConnection connects to address without TLS until the end of the test.
func plainConnection(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

// withAuthorization adds a header to the calls of ctx. An empty header adds none.
func withAuthorization(ctx context.Context, header string) context.Context {
	if header == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, authorizationHeader, header)
}

// deniedReason returns the server's reason in a PermissionDenied error, or "" for other errors.
func deniedReason(err error) string {
	denied, _ := errors.AsType[*serviceerror.PermissionDenied](err)
	if denied == nil {
		return ""
	}
	return denied.Reason
}

func payloads(t *testing.T, value any) *commonpb.Payloads {
	t.Helper()
	encoded, err := converter.GetDefaultDataConverter().ToPayloads(value)
	require.NoError(t, err)
	return encoded
}
