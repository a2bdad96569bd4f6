package claude

import (
	"fmt"
	"maps"
	"net"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// SessionVariable is a variable in the environment of every invocation, and so of all processes that its agent starts.
// Its value is the invocation's SessionID.
const SessionVariable = "CLAUDEOPS_SESSION_ID"

// EndSession kills every process on this host that an invocation with the id sessionID has left behind. It returns the
// number of killed processes. Normally Run ends an invocation's processes itself. EndSession is for two other cases:
// the invocation's worker and init were both killed, or the containment has no init. On systems other than Linux,
// EndSession finds no processes.
func EndSession(sessionID string) (ended int, err error) {
	ended, err = process.EndMarked(sessionMark(sessionID))
	if err != nil {
		return ended, fmt.Errorf("end what is left of session %s: %w", sessionID, err)
	}
	return ended, nil
}

// DeletedBytes returns the space of files without a name that processes of a session have open, as process.DeletedBytes
// does.
func DeletedBytes(sessionID string) int64 { return process.DeletedBytes(sessionMark(sessionID)) }

// Connection is a TCP connection, such as a net.Conn.
type Connection interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// FromAgent reports whether an agent's process has opened conn, a TCP connection within this host. An agent's processes
// are the CLI of an invocation, and all processes that this CLI has started. On systems other than Linux, FromAgent
// returns false.
//
// An error means that the answer is unknown, for example because the process has already ended.
func FromAgent(conn Connection) (bool, error) {
	local, err := endpoint(conn.LocalAddr())
	if err != nil {
		return false, err
	}
	remote, err := endpoint(conn.RemoteAddr())
	if err != nil {
		return false, err
	}
	return process.PeerIsOurs(local, remote, SessionVariable)
}

// endpoint returns one end of a TCP connection.
func endpoint(address net.Addr) (process.Endpoint, error) {
	tcp, is := address.(*net.TCPAddr)
	if !is || len(tcp.IP.To16()) != net.IPv6len {
		return process.Endpoint{}, fmt.Errorf("%v is not the address of a TCP connection", address)
	}
	return process.Endpoint{IP: [net.IPv6len]byte(tcp.IP.To16()), Port: uint16(tcp.Port)}, nil //nolint:gosec // a port
}

// sessionMark returns the environment variable, as NAME=value, by which an invocation's processes are recognised.
func sessionMark(sessionID string) string { return SessionVariable + "=" + sessionID }

// variables returns the invocation's own environment variables: those in Env, and the one with the session id.
func (i Invocation) variables() map[string]string {
	variables := map[string]string{}
	maps.Copy(variables, i.Env)
	if i.SessionID != "" { // `claude --version` has no session
		variables[SessionVariable] = i.SessionID
	}
	return variables
}
