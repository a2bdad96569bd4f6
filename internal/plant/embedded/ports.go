package embedded

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"go.temporal.io/server/common/primitives"
)

// loopback is the only address on which this package listens.
const loopback = "127.0.0.1"

// maxPort is the highest TCP port.
const maxPort = 1<<16 - 1

const (
	frontendService         = string(primitives.FrontendService)
	internalFrontendService = string(primitives.InternalFrontendService)
	uiService               = "Web UI"
)

// ports reserves the services' ports until the server listens on them.
type ports struct {
	numbers  map[string]int
	releases []func()
}

// reservePorts reserves frontendPort (0 means any free port) and a free port for each other service. The caller
// releases the ports when the server listens.
func reservePorts(frontendPort int) (*ports, error) {
	p := &ports{numbers: make(map[string]int)}
	for _, service := range serviceNames() {
		wanted := 0
		if service == frontendService {
			wanted = frontendPort
		}
		number, release, err := reservePort(wanted)
		if err != nil {
			p.release()
			return nil, portError(service, wanted, err)
		}
		p.numbers[service] = number
		p.releases = append(p.releases, release)
	}
	return p, nil
}

// release ends the reservation. A server that already listens on a port keeps the port.
func (p *ports) release() {
	for _, release := range p.releases {
		release()
	}
	p.releases = nil
}

func (p *ports) number(service string) int { return p.numbers[service] }

func (p *ports) address(service string) string { return hostPort(p.numbers[service]) }

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// portError returns an error that says why the service cannot have the port, and what the operator can do.
func portError(service string, port int, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d for the %s is in use by another program; choose another port, or 0 for a free "+
			"one: %w",
			port, service, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("port %d for the %s needs more rights than this user has; choose one above 1023: %w",
			port, service, err)
	default:
		return fmt.Errorf("port %d for the %s cannot be opened: %w", port, service, err)
	}
}
