package claude_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestFaults covers failures that a real CLI does not produce on demand.
func TestFaults(t *testing.T) {
	t.Parallel()
	const idle = 10 * time.Second
	quick := func(i *claude.Invocation) {
		i.Limits = claude.Limits{Wall: time.Minute, FirstByte: 30 * time.Second, Idle: idle, Grace: 200 * time.Millisecond}
	}
	for name, tc := range map[string]struct {
		fault  claudesim.Fault
		adjust func(*claude.Invocation)
		want   claude.ErrorKind
		check  func(*testing.T, claude.Result, error)
	}{
		"nothing is printed": {
			fault: claudesim.Fault{Hang: claudesim.HangAtStart}, want: claude.KindStalled,
			adjust: func(i *claude.Invocation) { i.Limits.FirstByte = 3 * time.Second },
			check: func(t *testing.T, result claude.Result, err error) {
				require.ErrorContains(t, err, "nothing in its first 3s")
				require.Empty(t, result.SessionID)
			},
		},
		"the output stops and SIGINT is ignored": {
			fault:  claudesim.Fault{Hang: claudesim.HangAfterReply, IgnoreInterrupt: true},
			adjust: quick, want: claude.KindStalled,
			check: func(t *testing.T, result claude.Result, _ error) {
				require.Equal(t, -1, result.ExitCode)
				require.True(t, result.CostEstimated)
				require.Positive(t, result.CostUSD)
				require.Positive(t, result.ContextTokens)
			},
		},
		"it goes on after its result": {
			fault: claudesim.Fault{Hang: claudesim.HangAfterResult}, want: claude.KindTimedOut,
			adjust: func(i *claude.Invocation) { i.Limits.Wall = 15 * time.Second },
			check: func(t *testing.T, result claude.Result, _ error) {
				require.Equal(t, "fine", result.Text, "what is known is kept")
				require.False(t, result.CostEstimated)
			},
		},
		"it crashes after a call": {
			fault: claudesim.Fault{Crash: &claudesim.Crash{After: 1, Code: 134, Stderr: "Aborted (core dumped)"}},
			want:  claude.KindMalformed,
			check: func(t *testing.T, result claude.Result, err error) {
				require.ErrorContains(t, err, "Aborted")
				require.Equal(t, 134, result.ExitCode)
				require.True(t, result.CostEstimated)
			},
		},
		"it is killed": {
			fault: claudesim.Fault{Crash: &claudesim.Crash{After: 1, Code: claudesim.KilledBySelf}}, want: claude.KindMalformed,
			check: func(t *testing.T, result claude.Result, err error) {
				require.ErrorContains(t, err, "signal 9")
				require.Equal(t, -1, result.ExitCode)
			},
		},
		"it prints credentials": {
			fault: claudesim.Fault{Crash: &claudesim.Crash{Code: 2, Stderr: "cannot use " + apiKey}}, want: claude.KindMalformed,
			check: func(t *testing.T, _ claude.Result, err error) {
				require.NotContains(t, err.Error(), apiKey)
				require.ErrorContains(t, err, "[masked: ANTHROPIC_API_KEY]")
			},
		},
		"no result":           {fault: claudesim.Fault{OmitResult: true}, want: claude.KindMalformed},
		"the wrong exit code": {fault: claudesim.Fault{ExitCode: 1}, want: claude.KindFailed},
		"garbage": {
			fault: claudesim.Fault{Garbage: []string{"npm warn", "{", `{"type":7}`, `{"type":"novelty","message":[]}`, "\x00\xff"}},
		},
		"long lines": {fault: claudesim.Fault{PadLines: 2 << 20}},
		"no session id": {
			fault: claudesim.Fault{OmitSessionID: true},
			check: func(t *testing.T, result claude.Result, _ error) { require.Empty(t, result.SessionID) },
		},
		"no window": {
			fault: claudesim.Fault{OmitWindow: true},
			check: func(t *testing.T, result claude.Result, _ error) { require.Zero(t, result.ContextWindow) },
		},
		"repeated results": {fault: claudesim.Fault{RepeatResult: 3}},
		"slow":             {fault: claudesim.Fault{LineDelay: claudesim.Duration(idle / 8)}, adjust: quick},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBenchOf(t, simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Bash("echo 1"), claudesim.Say("fine")).Failing(tc.fault))))
			invocation := b.invocation("look")
			if tc.adjust != nil {
				tc.adjust(&invocation)
			}
			result, err := b.cli.Run(t.Context(), invocation, nil)
			require.Equal(t, tc.want, claude.KindOf(err), "%v", err)
			if tc.want == "" {
				require.NoError(t, err)
				require.Contains(t, result.Text, "fine")
				require.False(t, result.CostEstimated)
				require.Equal(t, claude.Tokens{Input: 200, Output: 80, CacheRead: 60, CacheCreation: 40}, result.Tokens)
			}
			if tc.check != nil {
				tc.check(t, result, err)
			}
		})
	}
}

func TestRunStartsNothingForAContextThatHasEnded(t *testing.T) {
	t.Parallel()
	path := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Say("fine"))))
	b := newBenchOf(t, path)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("too late")
	cancel(cause)
	result, failed := b.failIn(t, ctx, claude.KindStopped, b.invocation("look"))
	require.ErrorIs(t, failed, cause)
	require.Equal(t, -1, result.ExitCode)
	require.Empty(t, simtest.Launches(t, path))
}

func TestRunNeedsAPlaceForTranscripts(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Say("fine")))))
	require.NoError(t, os.WriteFile(b.configDir, nil, 0o600))
	_, failed := b.fail(t, claude.KindNotStarted, b.invocation("look"))
	require.ErrorContains(t, failed, "cannot create the CLI's directory")
}

func TestALargePromptArrives(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Say("fine")))))
	prompt := strings.Repeat("line of a log\n", 300_000)
	b.run(t, b.invocation(prompt))
	require.Equal(t, strings.TrimSpace(prompt), strings.TrimSpace(b.requests()[0].Prompt()))
}
