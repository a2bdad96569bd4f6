package process

import (
	"errors"
	"fmt"
	"strings"
)

// Mode is how far the end of a tree reaches. See the package's comment.
type Mode string

// The modes. ModeAuto is a choice only: the best mode in which the program can still do all that
// its user can do. A namespace is not that, and has to be asked for: from inside, no signal
// reaches the host's processes, and numbers that /proc shows are not those that kill takes. Where
// only a user namespace makes it possible, setuid programs such as sudo fail, too.
const (
	ModeAuto      Mode = "auto"
	ModeNamespace Mode = "namespace"
	ModeSubreaper Mode = "subreaper"
	ModeGroup     Mode = "group"
)

// Containment is what holds a tree together.
type Containment struct {
	// Mode is the mode in force, never ModeAuto.
	Mode Mode
	// Reason says what kept a better mode away, or what this one costs; empty when there is nothing to say.
	Reason string
}

// String describes c for a person.
func (c Containment) String() string {
	if c.Reason == "" {
		return string(c.Mode)
	}
	return fmt.Sprintf("%s (%s)", c.Mode, c.Reason)
}

// Probe tells which containment a tree gets that asks for choice, by trying it. An error says why
// there is none; it cannot happen with ModeAuto.
func Probe(choice Mode) (Containment, error) {
	return choose(choice, func(way candidate) error { return way.try() })
}

// tree is a program that was started, with what comes of it.
type tree interface {
	// pid is the number of the process that everything comes of.
	pid() int
	// interrupt asks the program and its group to end.
	interrupt()
	// kill ends everything.
	kill()
	// over is closed when there is nothing to do any more but to collect.
	over() <-chan struct{}
	// collect reads the output to its end, releases everything, and says how the program ended.
	collect() (Exit, error)
}

// candidate is one way to contain a tree.
type candidate struct {
	Containment
	// start starts a tree. It fails with an *unavailableError where this way is not to be had.
	start func(Spec) (tree, error)
	// try fails as start does.
	try func() error
}

// unavailableError is why a way to contain a tree is not to be had here.
type unavailableError struct {
	what  string
	cause error
}

// Error implements error.
func (e *unavailableError) Error() string { return fmt.Sprintf("no %s: %v", e.what, e.cause) }

// Unwrap returns the cause.
func (e *unavailableError) Unwrap() error { return e.cause }

// start starts spec in the best way that its choice allows.
func start(spec Spec) (started tree, in Containment, err error) {
	in, err = choose(spec.Containment, func(way candidate) (err error) {
		started, err = way.start(spec)
		return err
	})
	return started, in, err
}

// choose attempts the ways that choice allows, the best one first, until one is to be had.
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

// allowedBy lists the ways that choice allows, the best one first.
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
