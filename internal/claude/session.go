package claude

import (
	"fmt"
	"maps"
	"net"

	"github.com/claudeops/claudeops/internal/process"
)

// SessionVariable is in the environment of every invocation, and so of all that its agent starts.
// Its value is the invocation's SessionID.
const SessionVariable = "CLAUDEOPS_SESSION_ID"

// EndSession kills every process on this host that an invocation with that id has left behind, and
// returns how many there were. An invocation cleans up after itself; this is for one whose
// worker and init were both killed, and for a host without either. On systems other than Linux it
// finds nothing.
func EndSession(sessionID string) (ended int, err error) {
	ended, err = process.EndMarked(sessionMark(sessionID))
	if err != nil {
		return ended, fmt.Errorf("end what is left of session %s: %w", sessionID, err)
	}
	return ended, nil
}

// FromAgent reports whether a process of an agent on this host has opened conn, a TCP connection within the
// host: the claude of an invocation, or what that has started. On systems other than Linux it is false.
//
// The error says that it cannot be told, for example because the process has ended already.
func FromAgent(conn net.Conn) (bool, error) {
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

// sessionMark returns the entry of the environment that tells an invocation's processes from others.
func sessionMark(sessionID string) string { return SessionVariable + "=" + sessionID }

// variables returns what i adds to the environment.
func (i Invocation) variables() map[string]string {
	variables := map[string]string{}
	maps.Copy(variables, i.Env)
	if i.SessionID != "" { // a question for the version has none
		variables[SessionVariable] = i.SessionID
	}
	return variables
}
