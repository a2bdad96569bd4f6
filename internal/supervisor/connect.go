package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/claudeops/claudeops/internal/redact"
)

// connectTimeout is how long a Temporal frontend may take to answer.
const connectTimeout = 10 * time.Second

// ErrConnectionSettings is returned for settings of Temporal's own that cannot be used.
var ErrConnectionSettings = errors.New("the connection settings of Temporal")

// ConnectionOptions reads Temporal's own settings from environ ("NAME=value"):
// TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TLS and the profiles of
// temporal.toml. Where they lead to the server of the `starter up` that runs on the state
// directory, or name no address, they become those of that server, with its token.
func ConnectionOptions(environ []string, stateDir string, logger *slog.Logger) (client.Options, error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{EnvLookup: variables(environ)})
	if err != nil {
		return client.Options{}, fmt.Errorf("%w: %w", ErrConnectionSettings, err)
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	for _, scheme := range []string{"http://", "https://"} {
		if strings.HasPrefix(options.HostPort, scheme) {
			return client.Options{}, fmt.Errorf("%w: TEMPORAL_ADDRESS is %q; write host:port, without %s",
				ErrConnectionSettings, options.HostPort, scheme)
		}
	}
	options.Logger = log.NewStructuredLogger(logger)
	options.FailureConverter = MaskFailures(redact.New(environ))
	return withLocal(options, stateDir)
}

// withLocal returns options for the server of the `starter up` on the state directory, if they are meant for that one.
func withLocal(options client.Options, stateDir string) (client.Options, error) {
	address := options.HostPort
	if options.HostPort == "" {
		options.HostPort = client.DefaultHostPort
	}
	server, err := FindLocal(stateDir)
	switch {
	case errors.Is(err, ErrNoLocal), errors.Is(err, fs.ErrPermission):
		return options, nil // another Temporal, or another user's
	case err != nil:
		return client.Options{}, err
	case address == "" || server.isAt(address):
		return server.ClientOptions(options), nil
	}
	return options, nil
}

// Connect connects to Temporal and returns only once it has answered.
func Connect(ctx context.Context, options client.Options) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	connected, err := client.DialContext(ctx, options)
	if err != nil && isUnknownHost(ctx, options.HostPort) {
		return nil, fmt.Errorf("connect to Temporal at %s: there is no such host; set TEMPORAL_ADDRESS to where it runs", options.HostPort)
	}
	if denied, ok := errors.AsType[*serviceerror.PermissionDenied](err); ok {
		return nil, fmt.Errorf("connect to Temporal at %s: %s: %w", options.HostPort,
			cmp.Or(denied.Reason, "set TEMPORAL_API_KEY to a key that it knows"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s: %w; check that it runs there, or set TEMPORAL_ADDRESS", options.HostPort, err)
	}
	return connected, nil
}

// isUnknownHost reports whether the host of an address has no name that is known: the client's own error does
// not tell.
func isUnknownHost(ctx context.Context, address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.DefaultResolver.LookupHost(ctx, host)
	}
	failure, ok := errors.AsType[*net.DNSError](err)
	return ok && failure.IsNotFound
}

// variables is an environment as envconfig looks into it.
type variables []string

// Environ implements envconfig.EnvLookup.
func (v variables) Environ() []string { return v }

// LookupEnv implements envconfig.EnvLookup. Of a name that is there twice, the last
// counts, as in package os/exec.
func (v variables) LookupEnv(name string) (string, bool) {
	for _, entry := range slices.Backward(v) {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value, true
		}
	}
	return "", false
}
