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
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"

	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/records/encryption"
	"github.com/claudeops/claudeops/internal/redact"
)

// connectTimeout limits how long Connect waits for the Temporal frontend.
const connectTimeout = 10 * time.Second

// reportInterval is the time between two reports of a client's workers to Temporal. `claudeops workers` lists these
// reports.
const reportInterval = 30 * time.Second

// ErrConnectionSettings is the error for invalid settings of the connection to Temporal. ConnectionOptions lists these
// settings.
var ErrConnectionSettings = errors.New("the connection settings of Temporal")

// ConnectionOptions reads Temporal's own settings from environ ("NAME=value"): TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE,
// TEMPORAL_API_KEY, TLS and the profiles of temporal.toml. If a `claudeops up` runs on the state directory, it has a
// server of its own. If the settings name this server or no address, the options connect to this server with its
// token. All options have the converters of WithConverters.
func ConnectionOptions(environ []string, cfg config.Config, logger *slog.Logger) (client.Options, error) {
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
	return withLocal(WithConverters(options, redact.New(environ), cfg.Encryption.Keys), cfg.State.Dir)
}

// WithConverters returns options with the converters that every client and worker must have. The converters mask
// secrets in failures. If keys is not nil, they also encrypt what Temporal stores. The codecs in inner get payloads
// before encryption and after decryption.
func WithConverters(
	options client.Options, mask *redact.Redactor, keys *encryption.Keys, inner ...converter.PayloadCodec,
) client.Options {
	options.DataConverter = encryption.NewConverter(keys, inner...)
	options.FailureConverter = MaskFailures(mask, keys)
	return options
}

// withLocal changes options to use the server and the token of the `claudeops up` that runs on the state directory. If
// options name another server, withLocal returns them unchanged. If no `claudeops up` runs and options name no server,
// withLocal fills in Temporal's default address.
func withLocal(options client.Options, stateDir string) (client.Options, error) {
	address := options.HostPort
	if options.HostPort == "" {
		options.HostPort = client.DefaultHostPort
	}
	server, err := FindLocal(stateDir)
	switch {
	case errors.Is(err, ErrNoLocal), errors.Is(err, fs.ErrPermission):
		return options, nil // the settings may name another Temporal, or another user may own the state directory
	case err != nil:
		return client.Options{}, err
	case address == "" || server.isAt(address):
		return server.ClientOptions(options), nil
	}
	return options, nil
}

// Connect connects to Temporal and returns after the server has answered. Connect waits at most connectTimeout.
func Connect(ctx context.Context, options client.Options) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	// if it cannot decrypt a chain's data, the SDK's own converter would end the chain
	if options.DataConverter == nil {
		options.DataConverter = encryption.NewConverter(nil)
	}
	options.WorkerHeartbeatInterval = cmp.Or(options.WorkerHeartbeatInterval, reportInterval)
	connected, err := client.DialContext(ctx, options)
	if err != nil && isUnknownHost(ctx, options.HostPort) {
		return nil, fmt.Errorf("connect to Temporal at %s: there is no such host; set TEMPORAL_ADDRESS to where it "+
			"runs", options.HostPort)
	}
	if denied, ok := errors.AsType[*serviceerror.PermissionDenied](err); ok {
		return nil, fmt.Errorf("connect to Temporal at %s: %s: %w", options.HostPort,
			cmp.Or(denied.Reason, "set TEMPORAL_API_KEY to a key that it knows"), err)
	}
	if err != nil && options.HostPort == client.DefaultHostPort {
		return nil, fmt.Errorf("no Temporal answers at %s: run `claudeops up` in another terminal, or set "+
			"TEMPORAL_ADDRESS to where "+
			"yours runs", options.HostPort)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s: %w; check that it runs there, or set TEMPORAL_ADDRESS",
			options.HostPort, err)
	}
	return connected, nil
}

// isUnknownHost reports whether the host name in an address cannot be resolved. The error from connecting a client
// does not show this.
func isUnknownHost(ctx context.Context, address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.DefaultResolver.LookupHost(ctx, host)
	}
	failure, ok := errors.AsType[*net.DNSError](err)
	return ok && failure.IsNotFound
}

// variables is an environment ("NAME=value") that implements envconfig.EnvLookup.
type variables []string

// Environ implements envconfig.EnvLookup.
func (v variables) Environ() []string { return v }

// LookupEnv implements envconfig.EnvLookup. If a name occurs twice, LookupEnv returns the last value, as package
// os/exec does.
func (v variables) LookupEnv(name string) (string, bool) {
	for _, entry := range slices.Backward(v) {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value, true
		}
	}
	return "", false
}
