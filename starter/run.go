package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// runOptions are the flags of `run`.
type runOptions struct {
	chainOptions
	id         string
	trigger    string
	resumeFrom string
	actor      string
	wait       bool
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Start a chain",
		Long: "Run starts a chain and prints its ID. With --wait it shows what happens until the chain has ended;\n" +
			"notifications that take long are left on their way.\n\n" + exitHelp,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	o.register(flags)
	flags.StringVar(&o.id, "id", "", "workflow ID of the chain (default: one with the time in it)")
	flags.StringVar(&o.trigger, "trigger", string(escalation.TriggerManual), "what started the chain, for lists")
	flags.StringVar(&o.resumeFrom, "resume-from", "", "id of a conversation to start from")
	flags.StringVar(&o.actor, "actor", "", "who starts the chain, for the record (default: the name of your user)")
	flags.BoolVarP(&o.wait, "wait", "w", false, "follow the chain until it has ended")
	return cmd
}

// started is the result of `run` without --wait.
type started struct {
	ChainID string `json:"chain_id"`
	RunID   string `json:"run_id"`
}

func (a *app) run(ctx context.Context, o runOptions) error {
	input, err := a.runInput(o)
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
			_, _ = fmt.Fprintf(w, "Started chain %s. See it with: %s\n", printable(run.GetID(), maxChainID), lookCommand(run.GetID()))
		})
	}
	chain, err := a.follow(ctx, c, run)
	return a.printEnded(chain, err)
}

// printEnded prints a chain that was waited for, and returns what its outcome means for the program.
func (a *app) printEnded(chain escalation.Chain, err error) error {
	if err != nil {
		return err
	}
	if err := a.print(chain, func(w io.Writer) { a.writeTree(w, chain) }); err != nil {
		return err
	}
	return errorOf(chain)
}

// runInput makes the workflow's input from the flags and checks it, so that a mistake is told
// here and starts nothing.
func (a *app) runInput(o runOptions) (workflows.ChainInput, error) {
	if err := o.checkID(); err != nil {
		return workflows.ChainInput{}, err
	}
	input, err := a.chainInput(o.chainOptions)
	if err != nil {
		return input, err
	}
	input.Trigger, input.Actor = escalation.Trigger(o.trigger), a.actor(o.actor)
	if o.resumeFrom != "" {
		input.ResumeFrom = &workflows.ResumeFrom{SessionID: o.resumeFrom}
	}
	return input, input.Validate()
}

// checkID reports what is wrong with the ID that the chain is to have.
func (o runOptions) checkID() error {
	if o.id == "" {
		return nil
	}
	if _, err := strconv.ParseInt(o.id, 10, 64); err == nil {
		return fmt.Errorf("--id %s would be taken for the number of a session", o.id)
	}
	return checkID("--id", o.id)
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
	if _, runs := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); runs {
		return nil, fmt.Errorf("chain %s runs already: choose another --id, or see it with: %s", id, lookCommand(id))
	}
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
