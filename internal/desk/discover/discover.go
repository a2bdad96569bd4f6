// Package discover finds what runs on a machine, for the first settings of `claudeops init`. It changes nothing, and
// asks nobody.
//
// Each finder has a limit of time. A finder that fails finds nothing, and Machine.Problems says so. A program that is
// not installed is no problem. Names come from containers, units and files of others: Look drops those that are not one
// printable line.
package discover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// lookLimit limits the time for all finders together, which run at the same time.
	lookLimit = 8 * time.Second
	// maxFound limits the number of things of one kind. Nobody chooses from more on a screen.
	maxFound = 100
	// maxName limits the length of a name or a path in bytes.
	maxName = 200
)

// Machine lists what Look has found.
type Machine struct {
	Hostname string
	// System is the name of the operating system, such as "Debian GNU/Linux 12 (bookworm)"; empty if it is unknown.
	System string
	// Root reports that this process runs as root.
	Root bool
	// Engine is the program that lists the containers: docker or podman; empty if there is none.
	Engine     string
	Containers []Container
	// Projects lists Compose projects, those that run and those whose files were found, sorted by their directories.
	Projects []Project
	// OwnUnits lists systemd services that somebody has installed on this machine by hand, and FailedUnits all failed
	// units.
	OwnUnits, FailedUnits []string
	Ports                 []Port
	// Contexts lists the contexts of kubectl, Repositories the git repositories with Compose files, and SSHHosts the
	// hosts of ~/.ssh/config.
	Contexts, Repositories, SSHHosts []string
	// Sudo reports that the user may run programs with sudo without a password.
	Sudo bool
	// Units names the unit of Claude Ops that is installed here: claudeops-up or claudeops-worker; empty if none is.
	Unit string
	// Problems says in a sentence each what could not be looked at.
	Problems []string
}

// Look looks at a machine. It takes at most a few seconds.
func Look(ctx context.Context, host Host) Machine {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	l := &look{host: host, found: Machine{Root: host.UID == 0, Hostname: host.Hostname}}
	finders := []finder{
		{"containers", l.containers},
		{"Compose files", l.composeFiles},
		{"units", l.units},
		{"failed units", l.failedUnits},
		{"listening ports", l.ports},
		{"kubectl", l.contexts},
		{"ssh", l.sshHosts},
		{"sudo", l.sudo},
		{"system", l.system},
	}
	var running sync.WaitGroup
	problems := make([]string, len(finders))
	for i, one := range finders {
		running.Go(func() {
			if err := one.find(ctx); err != nil {
				problems[i] = one.problem(err)
			}
		})
	}
	running.Wait()
	l.found.Problems = slices.DeleteFunc(problems, func(problem string) bool { return problem == "" })
	l.found.tidy()
	return l.found
}

// finder looks at one kind of things.
type finder struct {
	name string
	find func(ctx context.Context) error
}

func (f finder) problem(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return f.name + ": the look took too long, and found nothing or a part"
	}
	return oneLine(fmt.Sprintf("%s: %v", f.name, err))
}

// look collects what the finders find. Each finder writes to fields of its own, except for the fields behind the mutex.
type look struct {
	host Host

	mutex sync.Mutex
	found Machine
}

// tidy sorts what was found, and limits it.
func (m *Machine) tidy() {
	for _, names := range []*[]string{&m.OwnUnits, &m.FailedUnits, &m.Contexts, &m.Repositories, &m.SSHHosts} {
		slices.Sort(*names)
		*names = few(slices.Compact(*names))
	}
	m.Projects = few(merged(m.Projects))
	m.Containers = few(m.Containers)
	m.Ports = few(m.Ports)
}

func few[T any](all []T) []T { return all[:min(len(all), maxFound)] }
