// Command starter is the operator's command line: it starts chains and shows them, checks
// an installation, and runs everything in one process for one machine (up) or for a look
// (demo).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/claudeops/claudeops/internal/agentshell" // this program is also the shell of its agents
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := execute(ctx, process{
		args: os.Args[1:], environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		now: time.Now, patience: queryTimeout,
	})
	stop()
	os.Exit(int(code))
}
