package supervisor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/claudeops/claudeops/internal/embedded"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// TestSetUpNamespaceWithoutPermission uses a server that permits listing attributes and denies adding them. The error
// must contain the commands for an operator with permission.
func TestSetUpNamespaceWithoutPermission(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	server, err := embedded.Start(t.Context(), embedded.Options{NoUI: true, Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	connect := func(options ...grpc.DialOption) client.Client {
		c, err := supervisor.Connect(t.Context(), client.Options{
			HostPort: server.Address(), Logger: log.NewStructuredLogger(quiet()),
			ConnectionOptions: client.ConnectionOptions{DialOptions: options},
		})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	mayNotAdd := func(
		ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		if method == operatorservice.OperatorService_AddSearchAttributes_FullMethodName {
			return status.Error(codes.PermissionDenied, "request unauthorized")
		}
		return invoke(ctx, method, req, reply, conn, options...)
	}

	err = supervisor.SetUpNamespace(t.Context(), connect(grpc.WithChainUnaryInterceptor(mayNotAdd)), "default")
	var missing *supervisor.MissingAttributesError
	require.ErrorAs(t, err, &missing)
	require.Len(t, missing.Missing, 7)
	for _, want := range []string{
		"temporal operator search-attribute create --namespace default --name ClaudeOpsTier --type Int\n",
		"temporal operator search-attribute create --namespace default --name ClaudeOpsOutcome --type Keyword\n",
		"temporal operator search-attribute create --namespace default --name ClaudeOpsServices --type KeywordList\n",
		"temporal operator search-attribute create --namespace default --name ClaudeOpsCostUSD --type Double\n",
		"request unauthorized",
	} {
		require.ErrorContains(t, err, want)
	}

	may := connect()
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), may, "default"))
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), may, "default"), "twice is fine")
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), connect(grpc.WithChainUnaryInterceptor(mayNotAdd)), "default"),
		"nothing is missing, so nothing is added")
}
