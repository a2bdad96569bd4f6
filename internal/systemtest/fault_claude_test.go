//go:build linux

package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// misbehaviour describes a fault of claude and the result that the chain must have.
type misbehaviour struct {
	// script returns the turns of the faulty claude. The script creates the file marker while it runs. token is in
	// the command line of the processes that it starts without its environment.
	script func(marker, token string) []claudesim.Turn
	env    []string
	// cancel says that the chain is cancelled as soon as the marker exists.
	cancel bool

	outcome escalation.Outcome
	status  escalation.SessionStatus
	// problem is a part of the session's recorded error.
	problem string
	// retried is a part of the first attempt's failure. A second attempt then does the work. Empty means that no
	// attempt fails.
	retried string
}

// goesWrongOnce returns the script of a Tier 1 whose first process fails. The second process finds the conversation
// and concludes.
func goesWrongOnce(fault claudesim.Fault) func(marker, token string) []claudesim.Turn {
	return func(marker, _ string) []claudesim.Turn {
		return []claudesim.Turn{
			claudesim.On(claudesim.Match{Prompt: "ended before its work was done"}, claudesim.Bash("touch "+marker), claudesim.Conclude(allWell())),
			claudesim.Always(claudesim.Bash("touch "+marker), claudesim.Conclude(allWell())).Failing(fault),
		}
	}
}

func misbehaviours() map[string]misbehaviour {
	stubborn := func(marker, token string) []claudesim.Turn {
		return []claudesim.Turn{
			claudesim.Always(claudesim.Bash("touch " + marker + "; sleep 300; : " + token)).
				Failing(claudesim.Fault{IgnoreInterrupt: true}),
		}
	}
	return map[string]misbehaviour{
		"ignores_sigint_cancelled": {
			script: stubborn, cancel: true,
			outcome: escalation.OutcomeAborted, status: escalation.SessionStopped, problem: "the chain was cancelled",
		},
		"ignores_sigint_timed_out": {
			script: stubborn, env: []string{"CLAUDEOPS_TIER1_TIMEOUT=20s", "CLAUDEOPS_FIRST_BYTE_TIMEOUT=20s", "CLAUDEOPS_STOP_GRACE=1s"},
			outcome: escalation.OutcomeNeedsHuman, status: escalation.SessionTimedOut, problem: "its whole time limit of 20s",
		},
		"forks_daemons": {
			script: func(marker, token string) []claudesim.Turn {
				daemon := "sh -c 'touch " + marker + "; sleep 300; : " + token + "' < /dev/null > /dev/null 2>&1 &"
				return []claudesim.Turn{claudesim.Always(
					claudesim.Bash("setsid "+daemon+" env -i setsid "+daemon+" sleep 1"), claudesim.Conclude(allWell()))}
			},
			outcome: escalation.OutcomeHealthy, status: escalation.SessionCompleted,
		},
		"prints_nothing": {
			script: goesWrongOnce(claudesim.Fault{Hang: claudesim.HangAtStart, Times: 1}),
			env:    []string{"CLAUDEOPS_FIRST_BYTE_TIMEOUT=15s"}, retried: "it printed nothing in its first 15s",
			outcome: escalation.OutcomeHealthy, status: escalation.SessionCompleted,
		},
		"goes_silent": {
			script: goesWrongOnce(claudesim.Fault{Hang: claudesim.HangAfterReply}),
			env:    []string{"CLAUDEOPS_IDLE_TIMEOUT=15s"}, retried: "it printed nothing for 15s",
			outcome: escalation.OutcomeHealthy, status: escalation.SessionCompleted,
		},
		"exits_0_without_a_result": {
			script:  goesWrongOnce(claudesim.Fault{OmitResult: true}),
			retried: "claude ended without a result (exit code 0)",
			outcome: escalation.OutcomeHealthy, status: escalation.SessionCompleted,
		},
		"exits_1_after_a_good_result": {
			script:  goesWrongOnce(claudesim.Fault{ExitCode: 1}),
			retried: "claude reported success but ended with exit code 1",
			outcome: escalation.OutcomeHealthy, status: escalation.SessionCompleted,
		},
		"is_killed": {
			script:  goesWrongOnce(claudesim.Fault{Crash: &claudesim.Crash{After: 1, Code: claudesim.KilledBySelf}}),
			retried: "claude ended without a result (ended by signal 9 (killed))",
			outcome: escalation.OutcomeHealthy, status: escalation.SessionCompleted,
		},
	}
}

// TestFaultClaude runs a chain with each misbehaviour. The chain must end, the record must give the reason, and no
// process may be left.
func TestFaultClaude(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for name, tt := range misbehaviours() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marker := filepath.Join(t.TempDir(), "at-it")
			token := fmt.Sprint("token-of-", name, "-", os.Getpid()) // another run of this test has another
			claude := simtest.Install(t, claudesim.Play(tt.script(marker, token)...))
			environ := append(environment(t, claude, "CLAUDEOPS_TASK_QUEUE=claude_"+name), append(toolsAllowed(), tt.env...)...)
			s := startSite(t, temporalServer, environ)
			began := time.Now()
			run := s.start(nil)
			if tt.cancel {
				require.Eventually(t, exists(marker), testTimeout, 20*time.Millisecond)
				require.NoError(t, s.client.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
			}
			_, err := s.finish(run)
			require.Equal(t, tt.cancel, temporal.IsCanceledError(err), "%v", err)
			chain := s.query(run)
			for _, mark := range []string{chain.Last().SessionID, token} {
				require.Empty(t, processesOf(t, mark), "left behind")
			}
			require.FileExists(t, marker, "it was at it")
			require.Equal(t, tt.outcome, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			require.Len(t, chain.Sessions, 1, "one session, however often it was tried")
			session := chain.Sessions[0]
			require.Equal(t, tt.status, session.Status)
			require.Contains(t, session.Error, tt.problem)
			require.Zero(t, session.Survivors)
			started := 1
			if tt.retried != "" {
				started = 2
				require.Contains(t, strings.Join(failedAttempts(t, s, run), "\n"), tt.retried)
			}
			require.Len(t, simtest.Launches(t, claude), started)
			require.GreaterOrEqual(t, session.Attempts, started, "and those that are lost on their way to the worker")
			requireRecorded(t, s, chain)
			t.Logf("faults: claude %s: chain %s, session %s, %d attempts, $%.4f, 0 processes left, %.1f s",
				name, chain.Outcome, session.Status, session.Attempts, session.CostUSD, time.Since(began).Seconds())
		})
	}
}
