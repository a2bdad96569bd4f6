package shell

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"mvdan.cc/sh/v3/interp"
)

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

// replacedWait returns the command in place of wait or fg. The interpreter calls the job %1 g1.
func replacedWait(args []string) []string {
	args[0] = "wait"
	for i, arg := range args {
		if job, is := strings.CutPrefix(arg, "%"); is {
			args[i] = "g" + job
		}
	}
	return args
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
	if len(rest) == 0 {
		return s.killProcesses(shell, args)
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
	number, is = map[string]syscall.Signal{
		"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP,
		"CONT": syscall.SIGCONT,
	}[short]
	return number, is
}
