package claude

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/redact"
)

// Run runs one invocation to its end. It always returns a Result. A returned error is an *Error. When ctx ends, Run
// stops the CLI and returns an error of KindStopped.
//
// The function progress may be nil. Run calls it when the CLI has started. After that, the goroutine that reads the
// CLI's stream calls it, and waits until it returns. Run never calls progress concurrently, and never after Run has
// returned.
func (c *CLI) Run(ctx context.Context, invocation Invocation, progress func(Progress)) (Result, error) {
	run, err := c.prepare(invocation)
	if err != nil {
		return Result{CLIVersion: c.Version(), ExitCode: -1}, err
	}
	run.observe.report, run.observe.prices = progress, c.profile.prices
	exit, err := run.execute(ctx)
	result := run.result(exit)
	if verdict := run.judge(exit, err); verdict != nil {
		return result, verdict
	}
	return result, nil
}

// run is the state of an invocation.
type run struct {
	cli        *CLI
	invocation Invocation
	spec       process.Spec
	mask       *redact.Redactor
	started    time.Time
	acc        accumulator
	stderr     tailWriter
	observe    reporter
}

// begin reports the start of the invocation's tree.
func (r *run) begin(tree Tree) {
	if guard := r.invocation.Guard; guard != nil && guard.Started != nil {
		guard.Started(tree)
	}
	r.observe.started(tree.PID)
}

// prepare checks an invocation, creates the CLI's directories, and returns the invocation's run.
func (c *CLI) prepare(invocation Invocation) (*run, error) {
	if err := invocation.validate(); err != nil {
		return nil, err
	}
	args, err := c.arguments(invocation)
	if err != nil {
		return nil, err
	}
	if err := c.makeDirs(invocation); err != nil {
		return nil, err
	}
	if err := c.clearEmptyTranscript(invocation); err != nil {
		return nil, err
	}
	environ := c.environment(invocation)
	mask := c.masking(environ)
	return &run{
		cli:        c,
		invocation: invocation,
		mask:       mask,
		stderr:     tailWriter{limit: 5 * maxStderrBytes}, // masking can shorten the text
		acc: accumulator{
			phase: PhaseStarting, calls: toolCalls{mask: mask},
			output: outputText{field: invocation.TextField, mask: mask},
		},
		spec: process.Spec{
			Path:  c.path,
			Args:  args,
			Env:   environ,
			Dir:   invocation.Dir,
			Stdin: strings.NewReader(guardPrompt(invocation.Prompt)),
			Grace: invocation.Limits.Grace,

			Containment: c.options.Containment,
			Sandbox:     c.sandbox(invocation, environ),
			User:        c.options.User,
			Mark:        sessionMark(invocation.SessionID),
		},
	}, nil
}

// masking returns the redactor for the output of an invocation. It masks the secrets of the invocation's environment.
// It also masks the secrets of the operator's environment, because an agent could have found those secrets in another
// way.
func (c *CLI) masking(environ []string) *redact.Redactor {
	return redact.New(slices.Concat(c.options.Environ, environ))
}

// execute starts the CLI, reads its stream to the end and waits for it.
func (r *run) execute(ctx context.Context) (process.Exit, error) {
	r.started = time.Now()
	if ctx.Err() != nil {
		return process.Exit{Code: -1, StoppedBy: context.Cause(ctx)}, nil
	}
	output, err := newSpool(r.cli.options.SpoolDir)
	if err != nil {
		return process.Exit{Code: -1}, err
	}
	defer output.close()
	limited, dog := watch(ctx, r.invocation.Limits)
	defer dog.release()

	exit, err := r.follow(limited, output, dog)
	if err != nil {
		return process.Exit{Code: -1, StoppedBy: context.Cause(limited)}, err
	}
	if r.acc.last() == nil && ctx.Err() == nil {
		err = output.probe()
	}
	return exit, err
}

// maxUnauthorized is the number of refusals of the credentials, in a row, after which the CLI is stopped. The CLI
// renews the token of a login after the first one. It would repeat the call for half a minute, and print nothing that a
// person could read.
const maxUnauthorized = 2

// follow runs the CLI and processes its stream as it arrives.
func (r *run) follow(ctx context.Context, output *spool, dog *watchdog) (process.Exit, error) {
	lines := &lineWriter{limit: r.cli.bounds.line, handle: func(line []byte) {
		r.acc.calls.frozen = output.pastStop()
		r.observe.see(r.acc.line(line), &r.acc)
	}}
	sink := writerFunc(func(p []byte) (int, error) {
		dog.alive()
		if r.cli.bounds.exceeded(output.offset) { // the rest is ignored
			return len(p), nil
		}
		n, err := lines.Write(p)
		if r.acc.unauthorized >= maxUnauthorized {
			dog.bite(errLogin)
		}
		if lines.overran {
			dog.bite(errLongLine)
		}
		if r.cli.bounds.exceeded(output.size()) {
			dog.bite(errFlood)
		}
		return n, err
	})
	r.spec.Stdout, r.spec.Stderr = output.file, &r.stderr
	ended, read := make(chan struct{}), make(chan error, 1)
	followed := sync.OnceFunc(func() { go func() { read <- output.follow(ended, sink) }() })
	r.spec.Started = func(tree Tree) {
		r.begin(tree)
		followed() // the first report is that of the start
	}
	exit, err := process.Run(after(ctx, output.stopping), r.spec)
	close(ended)
	followed()
	err = errors.Join(err, <-read)
	lines.flush()
	return exit, err
}

// bounds holds the largest size of a run's output and of one line, in bytes; 0 means no limit.
type bounds struct {
	output int64
	line   int
}

// defaultBounds returns limits far above any output that was measured. Limits are needed, because the output takes disk
// space and a line takes memory.
func defaultBounds() bounds { return bounds{output: 1 << 30, line: 256 << 20} }

// exceeded reports whether the size of the output, in bytes, is above the limit.
func (b bounds) exceeded(output int64) bool { return b.output > 0 && output > b.output }

// after returns a context that ends when ctx ends, with the same cause. It calls the function act just before the
// returned context ends.
func after(ctx context.Context, act func()) context.Context {
	late, end := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		act()
		end(context.Cause(ctx))
	})
	return late
}

// writerFunc is a function that implements io.Writer.
type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
