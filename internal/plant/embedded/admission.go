package embedded

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"weak"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Connection is a TCP connection to the server, with both ends on this host.
type Connection interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// admission asks Options.Admit about each connection of the frontend once.
//
// gRPC has no hook for a new connection that Temporal lets us use. But all calls on a connection share one address
// object, so that object identifies the connection. A port number would not: another program can get it a moment later.
type admission struct {
	admit  func(Connection) error
	logger *slog.Logger

	mu sync.Mutex
	// verdicts holds the result of admit for the connections that still exist.
	verdicts map[weak.Pointer[net.TCPAddr]]func() error
}

func newAdmission(admit func(Connection) error, logger *slog.Logger) *admission {
	return &admission{admit: admit, logger: logger, verdicts: map[weak.Pointer[net.TCPAddr]]func() error{}}
}

// ends are the ends of a connection.
type ends struct{ local, remote net.Addr }

// LocalAddr implements Connection.
func (e ends) LocalAddr() net.Addr { return e.local }

// RemoteAddr implements Connection.
func (e ends) RemoteAddr() net.Addr { return e.remote }

// refusal says why the connection of a call is not admitted; "" if it is. Calls of the server's own services come over
// TLS with a certificate that only this process has, so they are admitted.
func (a *admission) refusal(ctx context.Context) string {
	caller, found := peer.FromContext(ctx)
	if a.admit == nil || !found {
		return ""
	}
	remote, overTCP := caller.Addr.(*net.TCPAddr)
	if _, internal := caller.AuthInfo.(credentials.TLSInfo); internal || !overTCP {
		return ""
	}
	if err := a.verdict(caller.LocalAddr, remote)(); err != nil {
		return err.Error()
	}
	return ""
}

// verdict returns a function that asks about a connection once, at its first call.
func (a *admission) verdict(local net.Addr, remote *net.TCPAddr) func() error {
	key := weak.Make(remote)
	copied := *remote // so that the map does not keep the address object of a connection that is gone
	connection := ends{local, &copied}
	a.mu.Lock()
	defer a.mu.Unlock()
	known, asked := a.verdicts[key]
	if !asked {
		known = sync.OnceValue(func() error {
			err := a.admit(connection)
			if err != nil {
				a.logger.Warn("the Temporal server refuses a connection", slog.Any("error", err))
			}
			return err
		})
		a.verdicts[key] = known
		runtime.AddCleanup(remote, a.forget, key)
	}
	return known
}

// forget removes the verdict on a connection that is gone.
func (a *admission) forget(key weak.Pointer[net.TCPAddr]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.verdicts, key)
}
