package systemtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/workflows"
)

// TestSetUpNamespaceWithoutPermission uses clients that may not add attributes, and not list them either. The error
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
	deny := func(denied ...string) grpc.DialOption {
		return grpc.WithChainUnaryInterceptor(func(
			ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
		) error {
			if slices.Contains(denied, method) {
				return status.Error(codes.PermissionDenied, "request unauthorized")
			}
			return invoke(ctx, method, req, reply, conn, options...)
		})
	}
	mayNotAdd := connect(deny(operatorservice.OperatorService_AddSearchAttributes_FullMethodName))
	mayNotList := connect(deny(operatorservice.OperatorService_AddSearchAttributes_FullMethodName,
		operatorservice.OperatorService_ListSearchAttributes_FullMethodName))

	for _, may := range []client.Client{mayNotAdd, mayNotList} {
		requireMissing(t, supervisor.SetUpNamespace(t.Context(), may, "default"))
	}

	may := connect()
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), may, "default"))
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), may, "default"), "twice is fine")
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), mayNotAdd, "default"), "nothing is missing, so nothing is added")
	require.Eventually(t, func() bool { // visibility learns of attributes later than their list
		return supervisor.SetUpNamespace(t.Context(), mayNotList, "default") == nil
	}, testTimeout, 100*time.Millisecond)
}

// requireMissing checks that err names the commands that add all attributes.
func requireMissing(t *testing.T, err error) {
	t.Helper()
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
}

// TestMissingAttributesOfTemporalCloud checks that an operator of Temporal Cloud gets a command that works there.
func TestMissingAttributesOfTemporalCloud(t *testing.T) {
	t.Parallel()
	missing := &supervisor.MissingAttributesError{
		Namespace: "claudeops.a1b2c", Missing: []temporal.SearchAttributeKey{workflows.TierAttribute, workflows.ServicesAttribute},
	}
	require.ErrorContains(t, missing, "tcld namespace search-attributes add --namespace claudeops.a1b2c"+
		" --search-attribute ClaudeOpsTier=Int --search-attribute ClaudeOpsServices=KeywordList")
	require.NotContains(t, missing.Error(), "temporal operator")
}
