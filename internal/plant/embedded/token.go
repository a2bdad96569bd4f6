package embedded

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/authorization"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// authorizationHeader is the header with the token. The header's value is bearerScheme and the token.
const (
	authorizationHeader = "authorization"
	bearerScheme        = "Bearer"
)

// tokenWanted is the error message for a refused client. It says how to get the token, which the program claudeops
// prints.
const tokenWanted = "this Temporal belongs to a `claudeops up` and wants its token: set CLAUDEOPS_STATE_DIR to the " +
	"state directory of that one, or run the lines that its `claudeops env` prints"

// token is the secret that clients must present. The empty token admits everybody.
type token string

// matches reports whether given is the token. The time of the comparison does not depend on the texts.
func (t token) matches(given string) bool {
	own, other := sha256.Sum256([]byte(t)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(own[:], other[:]) == 1
}

// isIn reports whether header, the value of authorizationHeader, contains the token.
func (t token) isIn(header string) bool {
	scheme, given, _ := strings.Cut(header, " ")
	return strings.EqualFold(scheme, bearerScheme) && t.matches(given)
}

// header returns the value of authorizationHeader for the token.
func (t token) header() string { return bearerScheme + " " + string(t) }

// clientOptions returns o with the token as credentials. An empty token changes nothing.
func (t token) clientOptions(o client.Options) client.Options {
	if t != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(string(t))
		o.ConnectionOptions.TLSDisabled = true // an API key would enable TLS
	}
	return o
}

// claimMapper gives the administrator's role to callers with the token, and no role to other callers.
type claimMapper struct{ token token }

var _ authorization.ClaimMapper = claimMapper{}

// GetClaims implements authorization.ClaimMapper. The server does not call GetClaims for requests without an
// authorization header.
func (m claimMapper) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	claims := new(authorization.Claims)
	if m.token.isIn(info.AuthToken) {
		claims.System = authorization.RoleAdmin
	}
	return claims, nil
}

// administratorsOnly refuses all calls of callers that are not administrators, with one exception: gRPC's health check,
// which reveals nothing but an open port. GetSystemInfo is refused like any other call. Every client begins with
// GetSystemInfo, so a wrong token is reported at once.
//
// Calls of the server's own services come through the internal frontend. That frontend treats every caller as an
// administrator, but accepts connections only from this process.
//
// administratorsOnly also refuses the calls of connections that were not admitted.
type administratorsOnly struct{ admission *admission }

var _ authorization.Authorizer = administratorsOnly{}

// Authorize implements authorization.Authorizer.
func (a administratorsOnly) Authorize(
	ctx context.Context, caller *authorization.Claims, target *authorization.CallTarget,
) (authorization.Result, error) {
	if target.APIName == healthpb.Health_Check_FullMethodName {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	if caller == nil || caller.System != authorization.RoleAdmin {
		return authorization.Result{Decision: authorization.DecisionDeny, Reason: tokenWanted}, nil
	}
	if reason := a.admission.refusal(ctx); reason != "" {
		return authorization.Result{Decision: authorization.DecisionDeny, Reason: reason}, nil
	}
	return authorization.Result{Decision: authorization.DecisionAllow}, nil
}
