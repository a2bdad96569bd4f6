package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// runOptions are the flags of `run`.
type runOptions struct {
	id         string
	tier       int
	maxTier    int
	prompt     string
	promptFile string
	services   []string
	dryRun     bool
	trigger    string
	resumeFrom string
	wait       bool
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Start a chain",
		Long:  "Run starts a chain and prints its ID. With --wait it shows what happens until the chain has ended.\n\n" + exitHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), o, cmd.Flags().Changed) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.id, "id", "", "workflow ID of the chain (default: one with the time in it)")
	flags.IntVar(&o.tier, "tier", 0, "tier to start with: 1, 2 or 3 (default 1)")
	flags.IntVar(&o.maxTier, "max-tier", 0, "highest tier that may run (default: the worker's)")
	flags.StringVarP(&o.prompt, "prompt", "p", "", "what to look at or to do, in your words")
	flags.StringVar(&o.promptFile, "prompt-file", "", "file to read the prompt from; - is standard input")
	flags.StringSliceVarP(&o.services, "service", "s", nil, "service to limit the chain to; can be repeated")
	flags.BoolVar(&o.dryRun, "dry-run", false, "look and report only: nothing escalates, nothing is changed")
	flags.StringVar(&o.trigger, "trigger", string(escalation.TriggerManual), "what started the chain, for lists")
	flags.StringVar(&o.resumeFrom, "resume-from", "", "id of a conversation to start from")
	flags.BoolVarP(&o.wait, "wait", "w", false, "follow the chain until it has ended")
	return cmd
}

// started is the result of `run` without --wait.
type started struct {
	ChainID string `json:"chain_id"`
	RunID   string `json:"run_id"`
}

func (a *app) run(ctx context.Context, o runOptions, given func(flag string) bool) error {
	input, err := a.chainInput(o, given)
	if err != nil {
		return misuse(err)
	}
	c, cfg, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := startChain(ctx, c, cfg.Worker.TaskQueue, o.id, input)
	if err != nil {
		return err
	}
	if !o.wait {
		return a.print(started{run.GetID(), run.GetRunID()}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "Started chain %s. See it with: starter chain %s\n", run.GetID(), run.GetID())
		})
	}
	chain, err := a.follow(ctx, c, run)
	if err != nil {
		return err
	}
	if err := a.print(chain, func(w io.Writer) { writeTree(w, chain) }); err != nil {
		return err
	}
	return errorOf(chain)
}

// chainInput makes the workflow's input from the flags and checks it, so that a mistake
// is told here and starts nothing.
func (a *app) chainInput(o runOptions, given func(flag string) bool) (workflows.ChainInput, error) {
	input := workflows.ChainInput{
		Trigger:   escalation.Trigger(o.trigger),
		StartTier: escalation.Tier(o.tier),
		MaxTier:   escalation.Tier(o.maxTier),
		Prompt:    o.prompt,
		Services:  o.services,
		DryRun:    o.dryRun,
	}
	for flag, tier := range map[string]int{"tier": o.tier, "max-tier": o.maxTier} {
		if given(flag) && !escalation.Tier(tier).Valid() {
			return input, fmt.Errorf("--%s %d is not a tier: it must be 1, 2 or 3", flag, tier)
		}
	}
	if _, err := strconv.Atoi(o.id); err == nil {
		return input, fmt.Errorf("--id %s would be taken for the number of a session", o.id)
	}
	if o.prompt != "" && o.promptFile != "" {
		return input, errors.New("--prompt and --prompt-file exclude each other")
	}
	if o.promptFile != "" {
		prompt, err := a.readPrompt(o.promptFile)
		if err != nil {
			return input, err
		}
		input.Prompt = prompt
	}
	if o.resumeFrom != "" {
		input.ResumeFrom = &workflows.ResumeFrom{SessionID: o.resumeFrom}
	}
	return input, input.Validate()
}

func (a *app) readPrompt(file string) (string, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(a.stdin)
	} else {
		data, err = os.ReadFile(file) //nolint:gosec // the operator names the file
	}
	if err != nil {
		return "", fmt.Errorf("read the prompt: %w", err)
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", fmt.Errorf("the prompt file %s is empty", file)
	}
	return string(data), nil
}

// startChain starts a chain under id, or under a new one if id is empty.
func startChain(ctx context.Context, c client.Client, queue, id string, input workflows.ChainInput) (client.WorkflowRun, error) {
	if id == "" {
		id = newChainID(time.Now())
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                queue,
		StaticSummary:                            summaryOf(input),
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, workflows.ChainWorkflow, input)
	if err != nil {
		return nil, fmt.Errorf("start chain %s: %w", id, err)
	}
	return run, nil
}

// newChainID returns an ID that sorts by time and that two people do not both get.
func newChainID(now time.Time) string {
	suffix := make([]byte, 3)
	_, _ = rand.Read(suffix) // crypto/rand.Read never fails
	return "chain-" + now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(suffix)
}

// summaryOf is the chain in a line, for the Web UI.
func summaryOf(input workflows.ChainInput) string {
	parts := []string{string(input.Trigger) + " chain"}
	if input.StartTier > escalation.TierObserve {
		parts = append(parts, "from "+input.StartTier.String())
	}
	if len(input.Services) > 0 {
		parts = append(parts, strings.Join(input.Services, ", "))
	}
	if input.DryRun {
		parts = append(parts, "dry run")
	}
	return printable(strings.Join(parts, " · "), 200)
}

// errNoSuchChain is returned for an ID that neither Temporal nor the records know.
var errNoSuchChain = errors.New("no such chain")
