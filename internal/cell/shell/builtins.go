package shell

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// own is the beginning of the names of our builtins. No program has such a name.
const own = "\x01"

// Commands that normalize adds to a script.
const (
	copyInput = own + "copy-input"
	jobStart  = own + "job-start"
	jobEnd    = own + "job-end"
	timeStart = own + "time-start"
	timeEnd   = own + "time-end"
	exitTrap  = own + "exit-trap"
	// setStatus takes an exit code, and a message for the standard error or none.
	setStatus = own + "set-status"
)

// builtin is a builtin that the interpreter lacks. It returns its exit code.
type builtin func(shell interp.HandlerContext, args []string) int

// builtin returns the builtin of a name; nil if there is none.
func (s *session) builtin(name string) builtin {
	switch name {
	case own + "kill":
		return s.kill
	case own + "ulimit":
		return s.ulimit
	case own + "umask":
		return s.umask
	case own + "which":
		return s.which
	case own + "jobs", own + "disown", own + "bg":
		return func(interp.HandlerContext, []string) int { return 0 }
	case exitTrap:
		return s.exitTrapStarts
	case setStatus:
		return s.setStatus
	case copyInput:
		return s.copyInput
	case jobStart:
		return s.jobStarts
	case jobEnd:
		return s.jobEnds
	case timeStart:
		return s.timeStarts
	case timeEnd:
		return s.timeEnds
	}
	return nil
}

// replaced replaces a call of a builtin that the interpreter lacks, or that it understands in part.
func (s *session) replaced(args []string) []string {
	if s.builtin(own+args[0]) != nil {
		args[0] = own + args[0]
		return args
	}
	switch args[0] {
	case "[", "test":
		return replacedCondition(args)
	case "fg", "wait":
		return replacedWait(args)
	case "cd":
		args = withoutDashes(args)
		if len(args) == 2 && args[1] == "" { // it stays where it is
			return []string{setStatus, "0"}
		}
	case "unset": // the interpreter panics at an empty name
		return slices.DeleteFunc(args, func(arg string) bool { return arg == "" })
	case "eval":
		return []string{"eval", normalized(strings.Join(withoutDashes(args)[1:], " "))}
	case "printf":
		if len(args) == 3 && args[1] == "-v" { // without a format
			return []string{setStatus, "2"}
		}
		if len(args) > 3 && args[1] == "-v" && syntax.ValidName(args[2]) {
			return []string{"eval", printInto(args[2], args[3:])}
		}
	case "trap":
		return s.replacedTrap(args)
	}
	return args
}

// withoutDashes removes the -- after the name of a builtin.
func withoutDashes(args []string) []string {
	if len(args) > 1 && args[1] == "--" {
		return slices.Delete(args, 1, 2)
	}
	return args
}

// printInto returns a script that assigns what printf prints. The x keeps the line breaks at its end.
func printInto(variable string, args []string) string {
	return fmt.Sprintf("%s=$(builtin printf %s; builtin echo x); %s=${%s%%x}", variable, quote(args), variable,
		variable)
}

// umask shows or sets the mode that new files do not get.
func (s *session) umask(shell interp.HandlerContext, args []string) int {
	if len(args) == 0 {
		mask := syscall.Umask(0)
		syscall.Umask(mask)
		_, _ = fmt.Fprintf(shell.Stdout, "%04o\n", mask)
		return 0
	}
	mask, err := strconv.ParseUint(args[0], 8, 9)
	if err != nil || len(args) > 1 {
		_, _ = fmt.Fprintf(shell.Stderr, "umask: %s: give an octal number\n", strings.Join(args, " "))
		return 1
	}
	syscall.Umask(int(mask))
	return 0
}

// which prints the files of programs. On some systems the program which is a script, which would need a shell.
func (s *session) which(shell interp.HandlerContext, args []string) int {
	code := 0
	for _, name := range args {
		if name == "-a" {
			continue
		}
		path, err := interp.LookPathDir(shell.Dir, shell.Env, name)
		if err != nil {
			code = 1
			continue
		}
		_, _ = fmt.Fprintln(shell.Stdout, filepath.Clean(path))
	}
	return code
}

// copyInput prints the standard input.
func (s *session) copyInput(shell interp.HandlerContext, _ []string) int {
	if shell.Stdin == nil {
		return 1
	}
	if _, err := io.Copy(shell.Stdout, shell.Stdin); err != nil {
		return 1
	}
	return 0
}

// setStatus returns an exit code.
func (s *session) setStatus(shell interp.HandlerContext, args []string) int {
	if len(args) > 1 {
		_, _ = fmt.Fprintln(shell.Stderr, args[1])
	}
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return 1
	}
	return code
}

// stopwatch holds the times at which the keyword time has begun, innermost last.
type stopwatch struct {
	mutex  sync.Mutex
	begun  []time.Time
	before []syscall.Rusage
}

func (s *session) timeStarts(interp.HandlerContext, []string) int {
	s.times.mutex.Lock()
	defer s.times.mutex.Unlock()
	s.times.begun, s.times.before = append(s.times.begun, time.Now()), append(s.times.before, children())
	return 0
}

// timeEnds prints the times since the last time-start, in the form of bash, or of POSIX with -p.
func (s *session) timeEnds(shell interp.HandlerContext, args []string) int {
	s.times.mutex.Lock()
	defer s.times.mutex.Unlock()
	last := len(s.times.begun) - 1
	if last < 0 {
		return shell.LastExitStatus
	}
	after, before := children(), s.times.before[last]
	for _, one := range []struct {
		name  string
		taken time.Duration
	}{
		{"real", time.Since(s.times.begun[last])},
		{"user", time.Duration(after.Utime.Nano() - before.Utime.Nano())},
		{"sys", time.Duration(after.Stime.Nano() - before.Stime.Nano())},
	} {
		if len(args) > 0 {
			_, _ = fmt.Fprintf(shell.Stderr, "%s %.2f\n", one.name, one.taken.Seconds())
			continue
		}
		minutes := int(one.taken.Minutes())
		_, _ = fmt.Fprintf(shell.Stderr, "%s\t%dm%.3fs\n", one.name, minutes,
			(one.taken - time.Duration(minutes)*time.Minute).Seconds())
	}
	s.times.begun, s.times.before = s.times.begun[:last], s.times.before[:last]
	return shell.LastExitStatus
}

// children returns the resources that the ended programs of this process have used.
func children() (used syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used)
	return used
}
