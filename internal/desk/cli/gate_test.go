package cli

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/workflows"
)

// TestCommandsAreSafeToCopy passes the commands that claudeops prints through a shell. It checks that the program
// receives the chain ID unchanged.
func TestCommandsAreSafeToCopy(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"chain-20261121-020140-b7dd05", "x; rm -rf ~", "it's $(id) `id` \\ \"", "~", "*", "-q", "--action=q", "- - '", strings.Repeat("x", 1000),
	} {
		for _, line := range []string{console.AnswerCommand(id), console.LookCommand(id)} {
			printed, err := exec.CommandContext(t.Context(), "sh", "-c", `claudeops() { printf '%s\0' "$@"; }; `+line).Output()
			require.NoError(t, err, line)
			words := strings.Split(strings.TrimSuffix(string(printed), "\x00"), "\x00")
			command, rest, err := rootCommand(&console.Console{}).Find(words)
			require.NoError(t, err, line)
			require.NoError(t, command.ParseFlags(rest), line)
			require.Equal(t, []string{id}, command.Flags().Args(), line)
		}
	}
	require.Equal(t, "claudeops gate chain-1", console.AnswerCommand("chain-1"))
	require.Equal(t, "claudeops gate 'a[2Jb'", console.AnswerCommand("a\x1b[2J\u202eb"), "no control of the terminal")
}

func TestInbox(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	empty := starter(t, s.environ, "gate")
	require.Equal(t, "No chain waits for a person.\n", empty.Stdout, empty.Stderr)

	older := chaintest.OpenedGate()
	older.OpenedAt = older.OpenedAt.Add(-50 * time.Hour)
	s.plays(t, "chain-young", scene{Chain: chaintest.Waiting(chaintest.OpenedGate())}, scene{})
	s.plays(t, "chain-old", scene{Chain: chaintest.Waiting(older)}, scene{})
	s.plays(t, "chain-hostile", scene{Chain: chaintest.Waiting(chaintest.BareGate())}, scene{})
	s.plays(t, "chain-busy", scene{Chain: escalation.Chain{Sessions: []escalation.Session{chaintest.Repairing()}}}, scene{})
	var rows []operations.GateRow
	require.Eventually(t, func() bool {
		listed := starter(t, s.environ, "gate", "-o", "json")
		return listed.Code == program.ExitOK && json.Unmarshal([]byte(listed.Stdout), &rows) == nil && len(rows) == 3
	}, clitest.Timeout, 200*time.Millisecond, "the gates are not listed")
	require.Equal(t, "chain-old", rows[0].ChainID)
	require.Equal(t, older.Reason, rows[0].Gate.Reason)
	require.Positive(t, rows[0].AgeSeconds)

	for name, size := range map[string][2]uint16{"inbox-100": {100, 12}, "inbox-80": {80, 12}, "inbox-40": {40, 30}} {
		shown := onScreen(t, s.environ, size[0], size[1], "gate")
		require.Equal(t, program.ExitOK, shown.Ends())
		shown.Is(name)
		require.NotContains(t, shown.Sent(), "\x1b]0;")
	}
	short := starter(t, s.environ, "gate", "--limit", "1")
	require.Contains(t, short.Stdout, "2 more; see them with --limit")
	require.Contains(t, short.Stdout, "chain-old", "the oldest gate is that of a chain that was started later")
	require.NotContains(t, short.Stdout, "chain-young")

	// A chain without a worker is listed, too.
	_, err := s.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "chain-mute", TaskQueue: "nobody polls this", TypedSearchAttributes: temporal.NewSearchAttributes(workflows.GateAttribute.ValueSet("open")),
	}, workflows.ChainWorkflow)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		listed := mute(t, s.environ, "gate")
		return strings.Contains(listed.Stdout, "no worker answered for it") && strings.Contains(listed.Stdout, "chain-old")
	}, clitest.Timeout, 200*time.Millisecond, "the chain without a worker is not listed")
	silent := mute(t, s.environ, "gate", "chain-mute")
	require.Equal(t, program.ExitFailure, silent.Code)
	require.Equal(t, "claudeops: chain chain-mute: no worker answered within 1s; is one running on task queue nobody polls this?\n", silent.Stderr)

	// An answered gate disappears from the list at once, even if Temporal still lists the chain.
	require.Equal(t, program.ExitOK, starter(t, s.environ, "gate", "chain-old", "--action", "q").Code)
	require.NotContains(t, starter(t, s.environ, "gate").Stdout, "chain-old")
}

func TestGateWithoutATerminal(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	asked := func(id string, gate escalation.Gate) {
		s.plays(t, id, scene{Chain: chaintest.Waiting(gate)}, scene{Chain: escalation.Chain{Reason: "it was answered"}}, scene{})
	}
	asked("chain-one", chaintest.OpenedGate())
	asked("chain-two", chaintest.BareGate())

	refusals := []struct {
		code program.ExitCode
		want string
		args []string
	}{
		{program.ExitUsage, `chain chain-one: "x" is no answer: type c (continue), f (fix), l (look again), o (override), q (abort)`, []string{"chain-one", "--action", "x"}},
		{program.ExitUsage, "chain chain-one: the gate that is open is gate-1, not gate-7", []string{"chain-one", "--gate", "gate-7", "--action", "f"}},
		{program.ExitUsage, "--guidance and guidance after the colon of --action exclude each other", []string{"chain-one", "--action", "f: x", "--guidance", "y"}},
		{
			program.ExitUsage, "chain chain-one: guidance has 10001 characters, and at most 10000 are allowed",
			[]string{"chain-one", "--action", "f", "--guidance", strings.Repeat("x", 10_001)},
		},
		{program.ExitUsage, "chain chain-one: mallory may not answer: CLAUDEOPS_GATE_APPROVERS does not list that name", []string{"chain-one", "--action", "f", "--actor", "mallory"}},
		{
			program.ExitUsage, "chain chain-two: gate-1 does not offer to continue: the session was itself a continuation, and it failed",
			[]string{"chain-two", "--action", "continue-session"},
		},
		{program.ExitFailure, "chain nobody: no such chain; `claudeops chains` lists them", []string{"nobody", "--action", "f"}},
	}
	for _, tt := range refusals {
		got := starter(t, s.environ, append([]string{"gate"}, tt.args...)...)
		require.Equal(t, tt.code, got.Code, got.Stderr)
		require.Equal(t, "claudeops: "+tt.want+"\n", got.Stderr)
		require.Empty(t, got.Stdout)
	}
	unasked := starter(t, s.environ, "gate", "chain-one")
	require.Equal(t, program.ExitUsage, unasked.Code)
	require.Equal(t, "claudeops: chain chain-one waits at gate-1, and there is no terminal to ask at: answer with --action\n", unasked.Stderr)
	require.Contains(t, unasked.Stdout, "gate-1 of chain chain-one\n")
	require.Contains(t, unasked.Stdout, "\n  f  fix: tier 2 starts fresh\n")
	require.Empty(t, s.answers(t, "chain-one"))

	shown := starter(t, s.environ, "gate", "chain-one", "-o", "json")
	var gate escalation.Gate
	require.NoError(t, json.Unmarshal([]byte(shown.Stdout), &gate), shown.Stderr)
	require.Equal(t, chaintest.OpenedGate(), gate)

	got := starter(t, s.environ, "gate", "chain-one", "--action", "c", "--guidance", "mind the lock", "--gate", "gate-1")
	require.Equal(t, program.ExitOK, got.Code, got.Stderr)
	require.Equal(t, "What is next: continue_session.\nFollow it with: claudeops watch chain-one\n", got.Stdout)
	got = starter(t, s.environ, "gate", "chain-two", "--action", "abort", "--actor", "grace", "-o", "json")
	require.Equal(t, program.ExitOK, got.Code, got.Stderr)
	require.JSONEq(t, `{"gate_id":"gate-1","action":"abort","next":"What is next: abort."}`, got.Stdout)
	require.Equal(t, []escalation.GateAnswer{
		{GateID: "gate-1", Action: escalation.GateContinue, Guidance: "mind the lock", Actor: "ada"},
	}, s.answers(t, "chain-one"))
	require.Equal(t, []escalation.GateAnswer{{GateID: "gate-1", Action: escalation.GateAbort, Actor: "grace"}}, s.answers(t, "chain-two"))

	late := starter(t, s.environ, "gate", "chain-one", "--action", "f")
	require.Equal(t, program.ExitFailure, late.Code)
	require.Equal(t, "claudeops: chain chain-one: it does not wait at a gate; `claudeops gate` lists the chains that do\n", late.Stderr)
}

func TestGateOnATerminal(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	asks := func(t *testing.T, id string, gate escalation.Gate, columns, rows uint16, environ ...string) *clitest.Screen {
		t.Helper()
		s.plays(t, id, scene{Chain: chaintest.Waiting(gate)}, scene{}, scene{})
		shown := onScreen(t, slices.Concat(s.environ, environ), columns, rows, "gate", id)
		shown.Sees("Your answer")
		return shown
	}
	answered := func(t *testing.T, shown *clitest.Screen, id string, want escalation.GateAnswer) {
		t.Helper()
		require.Equal(t, program.ExitOK, shown.Ends(), shown.Text())
		shown.Sees("What is next: " + string(want.Action) + ".")
		want.GateID, want.Actor = "gate-1", "ada"
		require.Equal(t, []escalation.GateAnswer{want}, s.answers(t, id))
	}

	t.Run("c is offered, with guidance after the colon", func(t *testing.T) {
		t.Parallel()
		shown := asks(t, "chain-c", chaintest.OpenedGate(), 80, 30)
		shown.Is("gate-offers-c")
		shown.Types("c: fix the import\r")
		answered(t, shown, "chain-c", escalation.GateAnswer{Action: escalation.GateContinue, Guidance: "fix the import"})
	})
	t.Run("guidance is asked for", func(t *testing.T) {
		t.Parallel()
		shown := asks(t, "chain-name", chaintest.OpenedGate(), 80, 30)
		shown.Types("continue-session\r")
		shown.Sees("Guidance for the agent, or nothing")
		shown.Is("gate-guidance")
		shown.Types("look at the proxy\r")
		answered(t, shown, "chain-name", escalation.GateAnswer{Action: escalation.GateContinue, Guidance: "look at the proxy"})
	})
	t.Run("c is not offered", func(t *testing.T) {
		t.Parallel()
		shown := asks(t, "chain-no-c", chaintest.BareGate(), 80, 30)
		shown.Is("gate-without-c")
		shown.Types("c\r")
		shown.Sees("gate-1 does not offer to continue")
		shown.Is("gate-without-c-hint")
		shown.Types("\x15f\r") // ctrl+u deletes the line first
		shown.Sees("Guidance for the agent, or nothing")
		shown.Types("\r")
		answered(t, shown, "chain-no-c", escalation.GateAnswer{Action: escalation.GateFix})
		require.NotContains(t, shown.Sent(), "\x1b]0;")
		require.NotContains(t, shown.Sent(), "\x1b[5m")
		require.NotContains(t, shown.Sent(), "\u202e")
	})
	t.Run("an end is confirmed", func(t *testing.T) {
		t.Parallel()
		shown := asks(t, "chain-q", chaintest.OpenedGate(), 80, 30)
		shown.Types("q\r")
		shown.Sees("The chain ends here. Sure?")
		shown.Is("gate-confirm")
		shown.Types("n")
		shown.Sees("Your answer")
		require.Empty(t, s.answers(t, "chain-q"))
		shown.Types("o\r")
		shown.Sees("The chain ends here. Sure?")
		shown.Types("y")
		answered(t, shown, "chain-q", escalation.GateAnswer{Action: escalation.GateOverride})
	})
	t.Run("narrow and without colour", func(t *testing.T) {
		t.Parallel()
		shown := asks(t, "chain-narrow", chaintest.BareGate(), 40, 40, "NO_COLOR=1")
		shown.Types("c\r")
		shown.Sees("gate-1 does not offer")
		shown.Is("gate-narrow")
		require.NotRegexp(t, `\x1b\[[0-9;]*\b(3[0-7]|9[0-7]|38|48)[0-9;]*m`, shown.Sent())
		shown.Types("\x03")
		require.Equal(t, program.ExitFailure, shown.Ends())
		shown.Sees("nothing was answered")
		require.Empty(t, s.answers(t, "chain-narrow"))
	})
	t.Run("somebody else was faster", func(t *testing.T) {
		t.Parallel()
		shown := asks(t, "chain-late", chaintest.OpenedGate(), 80, 30)
		require.Equal(t, program.ExitOK, starter(t, s.environ, "gate", "chain-late", "--action", "f").Code)
		shown.Types("f: too late\r")
		require.Equal(t, program.ExitUsage, shown.Ends())
		shown.Sees("it does not wait at a gate")
		require.Len(t, s.answers(t, "chain-late"), 1)
	})
}
