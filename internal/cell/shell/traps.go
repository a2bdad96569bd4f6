package shell

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// traps holds what a script does at signals.
type traps struct {
	mutex     sync.Mutex
	callbacks map[string]string
	caught    []string
	exit      int
	running   map[*os.Process]bool
	watched   sync.Once
	signals   chan os.Signal
}

// handled maps the names of the signals that a script can trap to the signals.
var handled = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "QUIT": syscall.SIGQUIT,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "PIPE": syscall.SIGPIPE,
}

// lastWords limits the time that a script has to end after a signal that it does not trap.
const lastWords = 3 * time.Second

// watch handles the signals that end a shell: with a trap, or by ending the programs and the script.
func (t *traps) watch() { t.watched.Do(t.start) }

func (t *traps) start() {
	t.signals = make(chan os.Signal, len(handled))
	for _, one := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		if !signal.Ignored(one) { // as nohup ignores SIGHUP
			signal.Notify(t.signals, one)
		}
	}
	go func() {
		for caught := range t.signals {
			t.handle(caught.(syscall.Signal)) //nolint:forcetypeassert // of this system
		}
	}()
}

func (t *traps) handle(caught syscall.Signal) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for name, one := range handled {
		if _, trapped := t.callbacks[name]; one == caught && trapped {
			t.caught = append(t.caught, name)
			return
		}
	}
	t.exit = 128 + int(caught)
	for program := range t.running {
		_ = program.Signal(caught)
	}
	time.AfterFunc(lastWords, func() { syscall.Exit(128 + int(caught)) })
}

// set sets the callbacks of signals, and returns the names that are none of these signals: EXIT, ERR and mistakes.
func (t *traps) set(callback string, names []string) (others []string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, name := range names {
		short := signalName(name)
		caught, is := handled[short]
		switch {
		case !is:
			others = append(others, short)
		case callback == "-":
			delete(t.callbacks, short)
		default:
			if t.callbacks == nil {
				t.callbacks = map[string]string{}
			}
			if t.callbacks[short] = callback; callback == "" {
				signal.Ignore(caught)
			} else {
				signal.Notify(t.signals, caught)
			}
		}
	}
	return others
}

// signalName returns a signal's name in capital letters, without SIG. The names of signals can be numbers.
func signalName(name string) string {
	if name == "0" {
		return "EXIT"
	}
	for known, one := range handled {
		if name == fmt.Sprint(int(one)) {
			return known
		}
	}
	return strings.TrimPrefix(strings.ToUpper(name), "SIG")
}

// pending returns the callbacks of the signals that were caught since the last call.
func (t *traps) pending() (callbacks []string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, name := range t.caught {
		callbacks = append(callbacks, t.callbacks[name])
	}
	t.caught = nil
	return callbacks
}

// exits returns the exit code with which the script must end because of a signal; 0 if it need not.
func (t *traps) exits() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.exit
}

// runs notes that a program runs, or does not run any more.
func (t *traps) runs(program *os.Process, running bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.running == nil {
		t.running = map[*os.Process]bool{}
	}
	if !running {
		delete(t.running, program)
		return
	}
	t.running[program] = true
	if t.exit != 0 { // the signal came while the program was started
		_ = program.Signal(syscall.Signal(t.exit - 128))
	}
}

// replacedTrap sets the callbacks of signals, and returns the command that sets the others.
func (s *session) replacedTrap(args []string) []string {
	if len(args) < 3 || strings.HasPrefix(args[1], "-") && args[1] != "-" {
		return args
	}
	others := s.traps.set(args[1], args[2:])
	if len(others) == 0 {
		return []string{"true"}
	}
	return append([]string{"trap", callbackOf(args[1], others)}, others...)
}

// callbackOf returns the callback of a trap. At the end of a script it runs although a signal ends the script.
func callbackOf(callback string, names []string) string {
	switch {
	case callback == "" || callback == "-":
		return callback
	case slices.Contains(names, "EXIT"):
		return quote([]string{exitTrap}) + "\n" + normalized(callback)
	}
	return normalized(callback)
}

// exitTrapStarts lets commands run after a signal that ends the script.
func (s *session) exitTrapStarts(shell interp.HandlerContext, _ []string) int {
	s.traps.mutex.Lock()
	defer s.traps.mutex.Unlock()
	s.traps.exit = 0
	return shell.LastExitStatus
}
