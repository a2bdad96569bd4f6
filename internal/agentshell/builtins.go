package agentshell

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	case "fg":
		args[0] = "wait"
		fallthrough
	case "wait":
		for i, arg := range args[1:] {
			if job, is := strings.CutPrefix(arg, "%"); is {
				args[i+1] = "g" + job
			}
		}
	case "eval":
		return []string{"eval", normalized(strings.Join(args[1:], " "))}
	case "printf":
		if len(args) > 3 && args[1] == "-v" && syntax.ValidName(args[2]) {
			return []string{"eval", printInto(args[2], args[3:])}
		}
	case "trap":
		if len(args) > 2 && !strings.HasPrefix(args[1], "-") || len(args) > 2 && args[1] == "-" {
			others := s.traps.set(args[1], args[2:])
			if len(others) == 0 {
				return []string{"true"}
			}
			return append([]string{"trap", args[1]}, others...)
		}
	}
	return args
}

// printInto returns a script that assigns what printf prints. The x keeps the line breaks at its end.
func printInto(variable string, args []string) string {
	return fmt.Sprintf("%s=$(builtin printf %s; builtin echo x); %s=${%s%%x}", variable, quote(args), variable, variable)
}

// jobs holds the background jobs of a script.
type jobs struct {
	mutex sync.Mutex
	all   map[string]*job
}

type job struct {
	ended    chan struct{}
	programs map[*os.Process]bool
	// exit is the exit code with which the job must end; 0 if nobody has killed it.
	exit int
}

// jobVariable is the variable with the number of the latest job of a shell. Within the job, it is the job's own number.
const jobVariable = "CLAUDEOPS_JOB"

// jobOf returns the number of the job in which a command runs; "" if it runs in the foreground.
func jobOf(shell interp.HandlerContext) string {
	if shell.Env.Get(jobVariable + "_INSIDE").IsSet() {
		return shell.Env.Get(jobVariable).String()
	}
	return ""
}

// jobStarts notes that a job starts. It runs in the shell that starts the job.
func (s *session) jobStarts(shell interp.HandlerContext, _ []string) int {
	s.jobs.mutex.Lock()
	defer s.jobs.mutex.Unlock()
	if s.jobs.all == nil {
		s.jobs.all = map[string]*job{}
	}
	s.jobs.all[shell.Env.Get(jobVariable).String()] = &job{ended: make(chan struct{}), programs: map[*os.Process]bool{}}
	return 0
}

// jobEnds notes that the job in which it runs has ended.
func (s *session) jobEnds(shell interp.HandlerContext, _ []string) int {
	if job := s.jobs.of(jobOf(shell)); job != nil {
		close(job.ended)
	}
	return shell.LastExitStatus
}

func (j *jobs) of(number string) *job {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.all[number]
}

// runs notes that a program of a job runs, or does not run any more.
func (j *jobs) runs(number string, program *os.Process, running bool) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	job := j.all[number]
	switch {
	case job == nil:
	case running:
		job.programs[program] = true
		if job.exit != 0 { // killed in the meantime
			_ = program.Signal(syscall.Signal(job.exit - 128))
		}
	default:
		delete(job.programs, program)
	}
}

// killed returns the exit code with which a job must end; 0 if it may go on.
func (j *jobs) killed(number string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if job := j.all[number]; job != nil {
		return job.exit
	}
	return 0
}

// wait waits until all jobs have ended.
func (j *jobs) wait() {
	j.mutex.Lock()
	all := make([]*job, 0, len(j.all))
	for _, job := range j.all {
		all = append(all, job)
	}
	j.mutex.Unlock()
	for _, job := range all {
		<-job.ended
	}
}

// signal sends a signal to the programs of a job. A signal that ends programs ends the job, too. It reports whether the
// job has not ended.
func (j *jobs) signal(number string, sent syscall.Signal) bool {
	job := j.of(number)
	if job == nil {
		return false
	}
	select {
	case <-job.ended:
		return false
	default:
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if sent == 0 {
		return true
	}
	if sent != syscall.SIGSTOP && sent != syscall.SIGCONT {
		job.exit = 128 + int(sent)
	}
	for program := range job.programs {
		_ = program.Signal(sent)
	}
	return true
}

// kill sends a signal to background jobs. For other processes it starts the program kill.
func (s *session) kill(shell interp.HandlerContext, args []string) int {
	sent, rest := syscall.SIGTERM, args
	if len(rest) > 1 && rest[0] == "-s" {
		rest = append([]string{"-" + rest[1]}, rest[2:]...)
	}
	if len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		number, is := signalNumber(rest[0][1:])
		if !is {
			return s.killProcesses(shell, args)
		}
		sent, rest = number, rest[1:]
	}
	for _, target := range rest {
		job, is := strings.CutPrefix(target, "%")
		if !is {
			job, is = strings.CutPrefix(target, "g")
		}
		if !is {
			return s.killProcesses(shell, args)
		}
		if !s.jobs.signal(job, sent) {
			_, _ = fmt.Fprintf(shell.Stderr, "kill: %s: no such job\n", target)
			return 1
		}
	}
	return 0
}

func (s *session) killProcesses(shell interp.HandlerContext, args []string) int {
	p := given{environ: exported(shell.Env), dir: shell.Dir, in: shell.Stdin, out: shell.Stdout, err: shell.Stderr}
	answer, code := s.ask(append([]string{"kill"}, args...), p)
	if code != 0 {
		return code
	}
	return s.execute(answer, p, jobOf(shell))
}

// signalNumber returns the signal of a name, such as TERM or SIGTERM, or of a number.
func signalNumber(name string) (number syscall.Signal, is bool) {
	if value, err := strconv.Atoi(name); err == nil && value >= 0 {
		return syscall.Signal(value), true
	}
	short := strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if number, is = handled[short]; is {
		return number, true
	}
	number, is = map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}[short]
	return number, is
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
		_, _ = fmt.Fprintf(shell.Stderr, "%s\t%dm%.3fs\n", one.name, minutes, (one.taken - time.Duration(minutes)*time.Minute).Seconds())
	}
	s.times.begun, s.times.before = s.times.begun[:last], s.times.before[:last]
	return shell.LastExitStatus
}

// children returns the resources that the ended programs of this process have used.
func children() (used syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used)
	return used
}
