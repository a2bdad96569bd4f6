package claudesim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// program is one process of the stand-in.
type program struct {
	scenario Scenario
	release  release
	records  records
	dir      string // the working directory
	env      map[string]string
	stdin    io.Reader
	stdout   io.Writer
	stderr   io.Writer
}

// Exit codes of the CLI.
const (
	exitOK         = 0
	exitFailure    = 1
	exitTerminated = 128 + int(syscall.SIGTERM)
)

// main runs the program and returns its exit code.
func (p *program) main(args []string) int {
	p.records.add(startsFile, Start{PID: os.Getpid(), Args: args})
	if a, err := parseArguments(args); err == nil {
		switch {
		case a.has("--version"):
			p.printf(p.stdout, "%s (Claude Code)\n", p.claimedVersion())
			return exitOK
		case a.has("--help"):
			p.printf(p.stdout, "%s", usage())
			return exitOK
		}
	}
	prompt, err := io.ReadAll(p.stdin)
	if err != nil {
		p.printf(p.stderr, "Error: read prompt: %v\n", err)
		return exitFailure
	}
	p.records.add(launchesFile, Launch{PID: os.Getpid(), Args: args, Dir: p.dir, Stdin: string(prompt), Env: p.env})
	o, err := readOptions(args, string(prompt), p.release)
	if err != nil {
		p.printf(p.stderr, "%v\n", err)
		return exitFailure
	}
	return p.converse(o)
}

// converse opens the conversation and runs the session in it.
func (p *program) converse(o options) int {
	o.permissions.dir = p.dir
	store := transcripts{root: p.configDir(), dir: p.dir}
	conversation, err := store.open(o)
	if err != nil {
		return p.refuse(o, err)
	}
	s := newSession(p, o, conversation)
	ctx, stop := p.watchSignals(s.fault.IgnoreInterrupt)
	defer stop()
	return s.run(ctx)
}

// refuse reports why the conversation cannot be opened, and returns the exit code.
func (p *program) refuse(o options, err error) int {
	p.printf(p.stderr, "%v\n", err)
	if _, missing := errors.AsType[missingError](err); !missing {
		return exitFailure
	}
	id := o.resume
	if o.fork {
		id = o.sessionID
	}
	if uuid.Validate(id) != nil {
		id = uuid.NewString()
	}
	s := &session{
		program: p, id: id, started: time.Now(),
		out: newEmitter(p.stdout, id, Fault{}), ledger: newLedger(p.release, costState{}),
	}
	s.emitResult(outcome{
		subtype: subtypeExecution, isError: true, neverRan: true,
		errors: []string{"No conversation found with session ID: " + o.resume},
	})
	return exitFailure
}

// A context that a signal has cancelled has one of these errors as its cause.
var (
	errInterrupted = errors.New("SIGINT")
	errTerminated  = errors.New("SIGTERM")
)

// watchSignals returns a context that SIGINT or SIGTERM cancels. If ignore is set, the signals have no effect.
func (p *program) watchSignals(ignore bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for received := range signals {
			switch {
			case ignore:
			case received == syscall.SIGTERM:
				cancel(errTerminated)
			default:
				cancel(errInterrupted)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// configDir returns the directory in which the CLI keeps its files.
func (p *program) configDir() string {
	if dir := p.env["CLAUDE_CONFIG_DIR"]; dir != "" {
		return dir
	}
	return p.env["HOME"] + "/.claude"
}

// maxRetries returns the maximum number of retries of a failed model call.
func (p *program) maxRetries() int {
	if n, err := strconv.Atoi(p.env["CLAUDE_CODE_MAX_RETRIES"]); err == nil {
		return n
	}
	return 10
}

func (p *program) claimedVersion() string {
	if p.scenario.ClaimedVersion != "" {
		return p.scenario.ClaimedVersion
	}
	return string(p.release.version)
}

// printf writes to w. It ignores errors, because the program that reads the output can have exited.
func (p *program) printf(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}
