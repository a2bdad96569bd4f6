package process

import (
	"errors"
	"fmt"
	"strings"
)

// Mode is a kind of containment. The package's comment describes the modes.
type Mode string

// The modes. ModeAuto chooses the best mode that does not limit what the program can do. ModeNamespace limits the
// program, so only a caller that names this mode gets it. From inside the namespace no signal reaches the host's
// processes, and kill expects other process numbers than /proc shows. If the namespace also needs a user namespace,
// setuid programs such as sudo fail.
const (
	ModeAuto      Mode = "auto"
	ModeNamespace Mode = "namespace"
	ModeSubreaper Mode = "subreaper"
	ModeGroup     Mode = "group"
)

// Containment describes the method by which all processes of a tree are found and ended.
type Containment struct {
	// Mode is the mode in force, never ModeAuto.
	Mode Mode
	// Reason explains why no better mode is available, or what Mode cannot do. It is empty if there is nothing to
	// explain.
	Reason string
}

// String describes c for a person.
func (c Containment) String() string {
	if c.Reason == "" {
		return string(c.Mode)
	}
	return fmt.Sprintf("%s (%s)", c.Mode, c.Reason)
}

// Probe tries the modes that choice allows and returns the containment that a tree would get. If no mode is available,
// the error says why. With ModeAuto a mode is always available.
func Probe(choice Mode) (Containment, error) {
	return choose(choice, func(way candidate) error { return way.try() })
}

// tree is a started program with all its descendants.
type tree interface {
	// pid returns the process number of the root.
	pid() int
	// interrupt asks the program and its group to end.
	interrupt()
	// kill ends the whole tree.
	kill()
	// over returns a channel that is closed when the tree has ended. Then collect can be called.
	over() <-chan struct{}
	// collect reads the output to its end, releases all resources, and returns the program's exit.
	collect() (Exit, error)
}

// candidate is one way to contain a tree.
type candidate struct {
	Containment
	// start starts a tree. It fails with an *unavailableError if this containment is not available on this host.
	start func(Spec) (tree, error)
	// try tests whether this containment is available. If the containment has an init, try starts an init that runs no
	// program. The errors of try are those of start.
	try func() error
}

// unavailableError explains why a containment is not available on this host.
type unavailableError struct {
	what  string
	cause error
}

// Error implements error.
func (e *unavailableError) Error() string { return fmt.Sprintf("no %s: %v", e.what, e.cause) }

// Unwrap returns the cause.
func (e *unavailableError) Unwrap() error { return e.cause }

// start starts the program that spec describes. It uses the best available containment that spec.Containment allows.
func start(spec Spec) (started tree, in Containment, err error) {
	in, err = choose(spec.Containment, func(way candidate) (err error) {
		started, err = way.start(spec)
		return err
	})
	return started, in, err
}

// choose calls attempt with each candidate that choice allows, best first, until a candidate is available. It returns
// the containment of that candidate.
func choose(choice Mode, attempt func(candidate) error) (Containment, error) {
	ways, err := allowedBy(choice)
	if err != nil {
		return Containment{}, err
	}
	var remarks []string
	for _, way := range ways {
		err = attempt(way)
		if unavailable, ok := errors.AsType[*unavailableError](err); ok {
			remarks = append(remarks, unavailable.Error())
			continue
		}
		if err != nil {
			return Containment{}, err
		}
		if way.Reason != "" {
			remarks = append(remarks, way.Reason)
		}
		return Containment{Mode: way.Mode, Reason: strings.Join(remarks, "; ")}, nil
	}
	return Containment{}, fmt.Errorf("containment %s: %s", choice, strings.Join(remarks, "; "))
}

// allowedBy lists the candidates that choice allows, best first.
func allowedBy(choice Mode) ([]candidate, error) {
	switch choice {
	case "", ModeAuto:
		return append(containedWays(ModeAuto), inGroup()), nil
	case ModeNamespace, ModeSubreaper:
		return containedWays(choice), nil
	case ModeGroup:
		return []candidate{inGroup()}, nil
	default:
		return nil, fmt.Errorf("containment %q is none of %s, %s, %s and %s",
			choice, ModeAuto, ModeNamespace, ModeSubreaper, ModeGroup)
	}
}
