//go:build !race

// The race detector reads the environment of each process, which the kernel then refuses to the stand-in.

package cell_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/claudesim"
)

// An agent of Tier 1 looks at a machine and tries to write a file, which the policy does not permit. The example plays
// the agent; leave out the scenario to run the real CLI.
func ExampleHost_Run() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		panic(err)
	}
	host, err := open(ctx, dir, claudesim.Play(claudesim.Always(
		claudesim.Bash("uptime"), claudesim.Bash("touch file"), claudesim.Conclude(map[string]any{"healthy": true}),
	)))
	if err != nil {
		panic(err)
	}
	defer func() { _ = host.Close() }()

	result, err := host.Run(ctx, cell.Spec{
		SessionID:  uuid.NewString(),
		Prompt:     "Is the machine well?",
		Model:      "haiku",
		Schema:     `{"type":"object","properties":{"healthy":{"type":"boolean"}},"required":["healthy"]}`,
		Tier:       1,
		Tools:      []string{"Bash"},
		Dir:        work,
		Timeout:    time.Minute,
		BudgetUSD:  0.5,
		Supervisor: printer{},
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("verdict %s, %d refused\n", result.Structured, len(result.Refused))
	// Output:
	// {"command":"uptime","description":"scripted command"} allowed=true
	// {"command":"touch file","description":"scripted command"} allowed=false
	// {"healthy":true} allowed=true
	// verdict {"healthy":true}, 1 refused
}
