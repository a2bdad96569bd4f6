package operations

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/workflows"
)

// StartKey identifies one wish to start a chain, however often it is sent.
type StartKey struct {
	// Person has chosen the key. The keys of two persons are independent.
	Person string
	Key    string
}

// maxStartKey limits a key, in characters.
const maxStartKey = 255

// inputMemo is the memo of a workflow with the digest of the input with which a key was used first.
const inputMemo = "ClaudeOpsInputDigest"

func (k StartKey) check() error {
	if k.Key == "" || utf8.RuneCountInString(k.Key) > maxStartKey || !plaintext.IsLine(k.Key) {
		return Invalid(fmt.Errorf("the key must have between 1 and %d printable characters", maxStartKey))
	}
	return nil
}

// chainID returns the ID of the chain that the key starts. It is derived from the key, so that Temporal holds the
// promise of StartOnce: over restarts, and for several servers.
func (k StartKey) chainID() string {
	return "chain-key-" + strings.ToLower(digest(k.Person, k.Key)[:26])
}

// digest returns a text that differs if any of the parts differs.
func digest(parts ...string) string {
	data, err := json.Marshal(parts)
	if err != nil {
		panic("operations: strings are valid JSON: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
}

// StartOnce starts a chain, unless the key has started it before. Then it returns that chain and false. The promise
// lasts as long as Temporal remembers the chain. The error is KindConflict if the key was used for another input.
func (c Chains) StartOnce(
	ctx context.Context, key StartKey, input workflows.ChainInput,
) (_ Started, fresh bool, err error) {
	if err := key.check(); err != nil {
		return Started{}, false, err
	}
	if err := input.Validate(); err != nil {
		return Started{}, false, Invalid(err)
	}
	said, err := json.Marshal(input)
	if err != nil {
		return Started{}, false, Invalid(err)
	}
	connection, cfg, err := c.connect(ctx)
	if err != nil {
		return Started{}, false, err
	}
	options := startOptions(cfg.Worker.TaskQueue, key.chainID(), input)
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	options.Memo = map[string]any{inputMemo: digest(string(said))}
	run, err := connection.ExecuteWorkflow(ctx, options, workflows.ChainWorkflow, input)
	if _, known := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); known {
		started, err := c.startedBefore(ctx, connection, options.ID, digest(string(said)))
		return started, false, err
	}
	if err != nil {
		return Started{}, false, fmt.Errorf("start chain %s: %w", options.ID, err)
	}
	return Started{run.GetID(), run.GetRunID()}, true, refusedAtOnce(ctx, connection, run)
}

// startedBefore returns the chain that a key has started before with the input that has this digest.
func (c Chains) startedBefore(ctx context.Context, connection Connection, id, wanted string) (Started, error) {
	chain, err := Describe(ctx, connection, id)
	if err != nil {
		return Started{}, chainError(id, err)
	}
	var used string
	if memo := chain.GetMemo().GetFields()[inputMemo]; memo != nil {
		if err := connection.Converter.FromPayload(memo, &used); err != nil {
			return Started{}, chainError(id, fmt.Errorf("read the input of the first start: %w", err))
		}
	}
	if used != wanted {
		err := fmt.Errorf("the key was used before, with another input, for chain %s: choose another key", id)
		return Started{}, withKind(KindConflict, err)
	}
	started := Started{id, chain.GetFirstRunId()}
	return started, refusedAtOnce(ctx, connection, connection.GetWorkflow(ctx, id, started.RunID))
}
