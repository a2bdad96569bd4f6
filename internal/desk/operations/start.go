package operations

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// Started names a chain that was started.
type Started struct {
	ChainID string `json:"chain_id"`
	RunID   string `json:"run_id"`
}

// Start starts a chain with the given ID. If the ID is empty, Start makes a new ID. The error is KindInvalid if the ID
// or the input is wrong, also for the workers, and KindConflict if a chain with this ID runs already.
func (c Chains) Start(ctx context.Context, id string, input workflows.ChainInput) (Started, error) {
	if id != "" {
		if err := CheckChainID(id); err != nil {
			return Started{}, err
		}
	}
	if err := input.Validate(); err != nil {
		return Started{}, Invalid(err)
	}
	connection, cfg, err := c.connect(ctx)
	if err != nil {
		return Started{}, err
	}
	run, err := Start(ctx, connection, cfg.Worker.TaskQueue, id, input)
	if err != nil {
		return Started{}, err
	}
	return Started{run.GetID(), run.GetRunID()}, refusedAtOnce(ctx, connection, run)
}

// startPatience limits how long a start waits for the workers' answer. A worker refuses an input within milliseconds.
const startPatience = 2 * time.Second

// refusedAtOnce returns the reason for which the workers refuse a chain that was started, such as a tier above theirs;
// nil if they do not, or if none answers in time.
func refusedAtOnce(ctx context.Context, c client.Client, run client.WorkflowRun) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	chain, err := Query(ctx, c, run.GetID(), run.GetRunID())
	if err != nil || chain.Outcome != escalation.OutcomeFailed || chain.Last() != nil {
		return nil // the chain runs, or will
	}
	return Invalid(chainError(run.GetID(), printable(errors.New(chain.Reason))))
}

// Start starts a chain on a task queue. If the ID is empty, Start makes a new ID.
func Start(
	ctx context.Context, c client.Client, queue, id string, input workflows.ChainInput,
) (client.WorkflowRun, error) {
	if id == "" {
		id = NewChainID(time.Now())
	}
	run, err := c.ExecuteWorkflow(ctx, startOptions(queue, id, input), workflows.ChainWorkflow, input)
	if _, runs := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); runs {
		return nil, withKind(KindConflict, fmt.Errorf("chain %s runs already: choose another ID", id))
	}
	if err != nil {
		return nil, fmt.Errorf("start chain %s: %w", id, err)
	}
	return run, nil
}

func startOptions(queue, id string, input workflows.ChainInput) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                queue,
		StaticSummary:                            summaryOf(input),
		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}
}

// idPattern matches the IDs that people can choose for a schedule or a chain. People type such an ID, and workflow IDs
// contain it.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$`)

// idProblem says what an ID must be.
const idProblem = "must begin with a letter or digit and consist of at most 200 letters, digits and . _ : -"

// CheckID validates an ID that a person has chosen. The argument what is the name of the ID in the error, such as
// "schedule ID".
func CheckID(what, id string) error {
	if !idPattern.MatchString(id) {
		return Invalid(fmt.Errorf("%s %q %s", what, id, idProblem))
	}
	return nil
}

// CheckChainID validates the ID that a person has chosen for a chain.
func CheckChainID(id string) error {
	if _, err := strconv.ParseInt(id, 10, 64); err == nil {
		return invalidField("id", "%s would be taken for the number of a session", id)
	}
	if !idPattern.MatchString(id) {
		return invalidField("id", "%q %s", line(id, maxError), idProblem)
	}
	if escalation.IsConversation(id) {
		return invalidField("id", "%s begins with %s, which is for conversations", id, escalation.ConversationPrefix)
	}
	return nil
}

// TimedOut reports whether the time for an answer was over, so that nobody knows if the request has arrived.
func TimedOut(err error) bool {
	_, ofTemporal := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return ofTemporal || errors.Is(err, context.DeadlineExceeded)
}

// NewChainID returns an ID that sorts by time. Its random suffix distinguishes chains that start in the same second.
func NewChainID(now time.Time) string {
	suffix := make([]byte, 3)
	_, _ = rand.Read(suffix) // crypto/rand.Read never fails
	return "chain-" + now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(suffix)
}

// summaryOf describes the chain in one line for the Web UI.
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
	return line(strings.Join(parts, " · "), 200)
}
