//go:build !linux

package embedded

import (
	"context"
	"fmt"
	"net"
)

// reservePort checks that a port is available (0 means any free port), and returns the port's number. Another program
// can still get the port before the server listens. Outside of Linux no socket can both keep a port and let another
// socket bind the port.
func reservePort(port int) (number int, release func(), err error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", hostPort(port))
	if err != nil {
		return 0, nil, err
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil {
		return 0, nil, err
	}
	if !ok {
		return 0, nil, fmt.Errorf("a loopback listener has the address %T", listener.Addr())
	}
	return address.Port, func() {}, nil
}
