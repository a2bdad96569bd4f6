package systemtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// The fault tests break a dependency of a chain at a chosen point. They check the supervisor's promise: no crash
// loses a conversation or runs a repair twice. They wait for states, never for fixed times. The soak tests (build tag
// soak, `make soak`) break the same dependencies many times at random moments.

// startedAgain is a part of every prompt of a session that had an earlier process.
const startedAgain = "ended before its work was done"

// These prefixes of chain IDs make the repair take long. With longChain it waits 3 s before it acts, longer than a
// worker needs to restart. With slowChain it waits 20 s before it acts, longer than a worker may be without Temporal.
// With lingeringChain it acts and then waits longer than any test.
const (
	longChain      = "long-"
	slowChain      = "slow-"
	lingeringChain = "lingering-"
)

// faultSite is an installation whose repairs write to files, so that a test can count them.
type faultSite struct {
	*site
	environ []string
	claude  string
	// effects is a directory with one file for each chain. Each repair adds a line to the file of its chain.
	effects string
	// mark is a variable in the environment of the workers and of all processes that they start.
	mark string
}

// agentsAtOnce is the maximum number of agents that a fault site runs at the same time.
const agentsAtOnce = 4

// newFaultSite returns an installation without a worker. It has the given number of services. Each chain of a service
// needs Tier 2, which repairs once.
func newFaultSite(t *testing.T, c client.Client, services int, more ...string) *faultSite {
	t.Helper()
	f := &faultSite{effects: t.TempDir()}
	f.claude = simtest.Install(t, claudesim.Play(repairingOnce(f.effects, services)...))
	f.mark = "FAULTS_MARK=" + f.effects
	f.environ = environment(t, f.claude, append([]string{
		"CLAUDEOPS_TIER1_TOOLS=Bash",
		"CLAUDEOPS_TIER2_TOOLS=Bash",
		"CLAUDEOPS_ESCALATION_LIMIT=none", "CLAUDEOPS_RETURNS=none", // many chains repair one service, one after another
		fmt.Sprintf("CLAUDEOPS_MAX_CONCURRENT_AGENTS=%d", agentsAtOnce),
		"CLAUDEOPS_PASS_ENV=FAULTS_MARK=claude", f.mark,
	}, more...)...)
	cfg, err := config.Load(f.environ)
	require.NoError(t, err)
	f.site = &site{t: t, cfg: cfg, client: c}
	return f
}

// repairingOnce returns the script of a Tier 2 that must not act twice. Only if its prompt mentions an earlier
// process does it check whether that process has acted. While it works it holds a file lock, which the kernel
// releases when the process dies. An agent that finds the lock held adds the chain's ID to the file overlaps.
func repairingOnce(effects string, services int) []claudesim.Turn {
	file := `"` + effects + `/$CLAUDEOPS_CHAIN_ID"`
	long := `case "$CLAUDEOPS_CHAIN_ID" in ` + longChain + `*) sleep 3;; ` + slowChain + `*) sleep 20;; esac`
	lingering := `case "$CLAUDEOPS_CHAIN_ID" in ` + lingeringChain + `*) sleep 600;; esac`
	const held = `99`
	alone := func(work string) claudesim.Reply {
		return claudesim.Bash(`flock -n -E ` + held + ` "` + effects + `/lock-$CLAUDEOPS_CHAIN_ID" sh -c '` + work + `'; ` +
			`test $? != ` + held + ` || echo "$CLAUDEOPS_CHAIN_ID" >> "` + effects + `/` + overlaps + `"`)
	}
	act := long + `; sleep 0.3; echo "$CLAUDEOPS_SESSION_ID" >> ` + file + `; sleep 0.3; ` + lingering
	turns := []claudesim.Turn{
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: startedAgain},
			alone("test -s "+file+" || { "+act+"; }"), claudesim.Conclude(resolved())),
		claudesim.On(claudesim.Match{Model: "sonnet"}, alone(act), claudesim.Conclude(resolved())),
	}
	// Each chain has its own service, so that no chain waits for another.
	for i := range services {
		own := asksFor(2)
		own.Services = []string{serviceOf(i)}
		turns = append(turns, claudesim.On(claudesim.Match{Model: "haiku", First: "`" + serviceOf(i) + "`"},
			claudesim.Bash("sleep 0.3"), claudesim.Conclude(own)))
	}
	return turns
}

// overlaps is the name of the file that lists the chains that had two agents at the same time.
const overlaps = "overlaps"

// serviceOf returns the service of the i-th sequence of chains. The chains of a sequence run one after another.
func serviceOf(i int) string { return fmt.Sprintf("service-%d", i) }

// run starts a chain, or finds it started, and waits for its result. It retries while the Temporal server is away.
func (f *faultSite) run(ctx context.Context, id, service string) (chain escalation.Chain, err error) {
	options := client.StartWorkflowOptions{
		ID: id, TaskQueue: f.cfg.Worker.TaskQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}
	for started := false; ; {
		if !started {
			_, err = f.client.ExecuteWorkflow(ctx, options, workflows.ChainWorkflow, map[string]any{"services": []string{service}})
			started = err == nil || temporal.IsWorkflowExecutionAlreadyStartedError(err)
		}
		if started {
			err = f.client.GetWorkflow(ctx, id, "").Get(ctx, &chain)
		}
		if _, ended := errors.AsType[*temporal.WorkflowExecutionError](err); err == nil || ended {
			return chain, err
		}
		select {
		case <-ctx.Done():
			return chain, fmt.Errorf("chain %s did not end: %w", id, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// begin starts a chain of service 0. The function that it returns waits for the chain's end, checks the chain with
// requireUnharmed and returns it.
func (f *faultSite) begin(t *testing.T, id string) (end func() escalation.Chain) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	type outcome struct {
		chain escalation.Chain
		err   error
	}
	ended := make(chan outcome, 1)
	go func() {
		defer cancel()
		chain, err := f.run(ctx, id, serviceOf(0))
		ended <- outcome{chain, err}
	}()
	return func() escalation.Chain {
		t.Helper()
		o := <-ended
		require.NoError(t, o.err)
		f.requireUnharmed(t, o.chain)
		return o.chain
	}
}

// requireUnharmed checks the supervisor's promise for a chain that has ended. The chain must be resolved, have acted
// once, never have had two agents at the same time, and have one closed record for each session.
func (f *faultSite) requireUnharmed(t *testing.T, chain escalation.Chain) {
	t.Helper()
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s: %s", chain.ID, chain.Reason)
	effect, err := os.ReadFile(filepath.Join(f.effects, chain.ID))
	require.NoError(t, err, "%s did not repair", chain.ID)
	require.Equal(t, 1, strings.Count(string(effect), "\n"), "%s: %q", chain.ID, effect)
	require.NoFileExists(t, filepath.Join(f.effects, overlaps), "two agents of a chain were at work at once")
	requireRecordedOnce(t, f.records(), chain)
}

// requireRecordedOnce checks that there is exactly one closed record for each session of the chain.
func requireRecordedOnce(t *testing.T, records *store.Store, chain escalation.Chain) {
	t.Helper()
	recorded, err := records.Chain(t.Context(), chain.ID)
	require.NoError(t, err)
	require.Equal(t, asJSON(t, chain.Sessions), asJSON(t, recorded))
	ids := map[string]bool{}
	for i := range recorded {
		ids[recorded[i].SessionID] = true
		require.NotEqual(t, escalation.SessionRunning, recorded[i].Status)
	}
	require.Len(t, ids, len(recorded))
	require.Len(t, recorded, 2, "%s: a tier may be repeated in its own session only", chain.ID)
}
