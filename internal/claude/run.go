package claude

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/process"
)

// Run runs one invocation to its end and returns what is known of it, also beside an error. The
// error, if any, is an *Error. The end of ctx stops the CLI and gives KindStopped.
//
// progress may be nil. It is called from the goroutine that reads the stream, never after Run has
// returned, and holds the stream up while it runs.
func (c *CLI) Run(ctx context.Context, invocation Invocation, progress func(Progress)) (Result, error) {
	run, err := c.prepare(invocation)
	if err != nil {
		return Result{CLIVersion: c.Version(), ExitCode: -1}, err
	}
	run.observe = reporter{report: progress}
	exit, err := run.execute(ctx)
	result := run.result(exit)
	if verdict := run.judge(exit, err); verdict != nil {
		return result, verdict
	}
	return result, nil
}

// run is one invocation under way.
type run struct {
	cli        *CLI
	invocation Invocation
	spec       process.Spec
	redact     func(string) string
	started    time.Time
	tally      tally
	stderr     tailWriter
	observe    reporter
}

// prepare checks an invocation and translates it, so that nothing starts that cannot work.
func (c *CLI) prepare(invocation Invocation) (*run, error) {
	if err := invocation.validate(); err != nil {
		return nil, err
	}
	args, err := c.arguments(invocation)
	if err != nil {
		return nil, err
	}
	if err := c.makeConfigDir(); err != nil {
		return nil, err
	}
	if err := c.clearEmptyTranscript(invocation); err != nil {
		return nil, err
	}
	environ := c.environment(invocation.Env)
	return &run{
		cli:        c,
		invocation: invocation,
		redact:     redactor(environ),
		stderr:     tailWriter{limit: 2 * maxStderrBytes},
		tally:      tally{phase: PhaseStarting},
		spec: process.Spec{
			Path:  c.path,
			Args:  args,
			Env:   environ,
			Dir:   invocation.Dir,
			Stdin: strings.NewReader(guardPrompt(invocation.Prompt)),
			Grace: invocation.Limits.Grace,
		},
	}, nil
}

// makeConfigDir creates the CLI's own directory, for its owner only: transcripts hold whatever
// the agent read.
func (c *CLI) makeConfigDir() error {
	if c.options.ConfigDir == "" {
		return nil
	}
	if err := os.MkdirAll(c.options.ConfigDir, 0o700); err != nil {
		return notStarted("cannot create the CLI's directory: %w", err)
	}
	return nil
}

// execute starts the CLI, reads its stream to the end and waits for it.
func (r *run) execute(ctx context.Context) (process.Exit, error) {
	r.started = time.Now()
	if ctx.Err() != nil {
		return process.Exit{Code: -1, StoppedBy: context.Cause(ctx)}, nil
	}
	output, err := newSpool(r.cli.options.ConfigDir)
	if err != nil {
		return process.Exit{Code: -1}, err
	}
	defer output.close()
	ctx, dog := watch(ctx, r.invocation.Limits)
	defer dog.release()

	lines := &lineWriter{handle: func(line []byte) {
		r.tally.calls.frozen = output.pastStop()
		r.observe.see(r.tally.line(line), &r.tally)
	}}
	sink := writerFunc(func(p []byte) (int, error) {
		dog.alive()
		return lines.Write(p)
	})
	r.spec.Stdout, r.spec.Stderr = output.file, &r.stderr
	ended, read := make(chan struct{}), make(chan error, 1)
	go func() { read <- output.follow(ended, sink) }()
	exit, err := process.Run(after(ctx, output.stopping), r.spec)
	close(ended)
	err = errors.Join(err, <-read)
	lines.flush()
	if err != nil {
		exit = process.Exit{Code: -1, StoppedBy: context.Cause(ctx)}
	}
	return exit, err
}

// after returns a context that ends like ctx, but only once act has returned.
func after(ctx context.Context, act func()) context.Context {
	late, end := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		act()
		end(context.Cause(ctx))
	})
	return late
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
