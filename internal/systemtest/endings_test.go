package systemtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// endingCase is a way in which a model or its provider says no, on a whole installation.
type endingCase struct {
	scenario claudesim.Scenario
	env      []string
	check    func(t *testing.T, s *site, asked func() []claudesim.Request)
}

// patient keeps a busy machine from repeating a session whose heartbeats are late.
const patient = "CLAUDEOPS_HEARTBEAT_INTERVAL=10s"

// poison is what a provider says of a conversation that it will never accept.
const poison = "messages.1.content.0: Invalid `signature` in `thinking` block"

func endingCases() map[string]endingCase {
	until := time.Now().Add(3 * time.Hour).Truncate(time.Second)
	gate := []string{"CLAUDEOPS_GATE_TIMEOUT=72h"}
	return map[string]endingCase{
		"a refused parent": {
			scenario: claudesim.Play(
				claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Conclude(asksFor(2))),
				claudesim.On(claudesim.Match{Model: "sonnet", First: "You look at infrastructure"}, claudesim.Fail(400, poison)),
				claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Conclude(resolved()))),
			check: func(t *testing.T, s *site, _ func() []claudesim.Request) {
				chain, err := s.finish(s.start(nil))
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
				require.Len(t, chain.Sessions, 3)
				require.Equal(t, escalation.EndingUnusable, chain.Sessions[1].Ending)
				require.Equal(t, 1, chain.Sessions[1].Attempts)
				require.Contains(t, chain.Sessions[1].Error, "signature")
				require.Equal(t, escalation.ContinuityHandoff, chain.Sessions[2].Continuity)
				requireRecorded(t, s, chain)
			},
		},
		"a refused parent and a wrong request": {
			env: append(gate, "CLAUDEOPS_API_RETRIES=0"),
			scenario: claudesim.Play(
				claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Conclude(asksFor(2))),
				claudesim.On(claudesim.Match{Model: "sonnet", First: "You look at infrastructure"}, claudesim.Fail(400, poison)),
				claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "try it now"}, claudesim.Conclude(resolved())),
				claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Fail(422, "no such field"))),
			check: func(t *testing.T, s *site, _ func() []claudesim.Request) {
				run := s.start(nil)
				gate := s.awaitGate(run.GetID(), "gate-1")
				require.Contains(t, gate.Reason, "no such field")
				require.Nil(t, gate.Continuation)
				_, err := s.resolve(run.GetID(), escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateFix, Actor: "ada", Guidance: "try it now"})
				require.NoError(t, err)
				chain, err := s.finish(run)
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
				require.Equal(t, escalation.EndingRequest, chain.Sessions[2].Ending)
				require.Equal(t, escalation.ContinuityHandoff, chain.Sessions[3].Continuity, "the refused parent is not resumed again")
			},
		},
		"a refusal": {
			env:      gate,
			scenario: claudesim.Play(claudesim.Always(claudesim.Refuse("I would rather not"))),
			check: func(t *testing.T, s *site, asked func() []claudesim.Request) {
				run := s.start(nil)
				gate := s.awaitGate(run.GetID(), "gate-1")
				require.Contains(t, gate.Reason, "the model refused, after the words “I would rather not”")
				require.NotContains(t, gate.Options, escalation.GateContinue)
				require.Contains(t, gate.Options, escalation.GateFix)
				chain := s.query(run)
				require.Len(t, chain.Sessions, 1)
				require.Equal(t, 1, chain.Sessions[0].Attempts)
				require.LessOrEqual(t, len(asked()), 2, "the new CLI itself asks twice")
				require.NoError(t, s.client.TerminateWorkflow(t.Context(), run.GetID(), "", "seen"))
			},
		},
		"an answer that is too long": {
			env: gate,
			scenario: claudesim.Play(
				claudesim.On(claudesim.Match{Prompt: "asks once for a shorter one"}, claudesim.Conclude(allWell())),
				claudesim.Always(claudesim.CutShort("long"))),
			check: func(t *testing.T, s *site, _ func() []claudesim.Request) {
				chain, err := s.finish(s.start(nil))
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, chain.Reason)
				require.Len(t, chain.Sessions, 1)
				require.Equal(t, 1, chain.Sessions[0].Attempts)
			},
		},
		"answers that are too long": {
			env:      gate,
			scenario: claudesim.Play(claudesim.Always(claudesim.CutShort("long"))),
			check: func(t *testing.T, s *site, asked func() []claudesim.Request) {
				run := s.start(nil)
				gate := s.awaitGate(run.GetID(), "gate-1")
				require.Contains(t, gate.Reason, "longer than the model may write")
				require.Equal(t, 1, s.query(run).Sessions[0].Attempts)
				require.Len(t, asked(), 8, "four of the CLI, and four more for the one request for a shorter answer")
				require.NoError(t, s.client.TerminateWorkflow(t.Context(), run.GetID(), "", "seen"))
			},
		},
		"the limit of the account": {
			scenario: claudesim.Play(claudesim.Always(claudesim.Limited(until))),
			env:      append(gate, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-scripted"),
			check: func(t *testing.T, s *site, asked func() []claudesim.Request) {
				run := s.start(nil)
				waits := func(id string) (wait *escalation.Wait) {
					require.Eventually(t, func() bool {
						chain, ok := s.tryQuery(s.client.GetWorkflow(t.Context(), id, ""))
						wait = chain.Wait
						return ok && wait != nil
					}, testTimeout, 50*time.Millisecond)
					return wait
				}
				wait := waits(run.GetID())
				require.Equal(t, escalation.RuleAccountLimit, wait.Rule)
				require.WithinDuration(t, until, wait.Until, time.Minute)
				calls := len(asked())
				second := s.startAs(nameOf(t)+"-second", nil)
				require.Equal(t, escalation.RuleAccountLimit, waits(second.GetID()).Rule)
				require.Empty(t, s.query(second).Sessions, "no session starts before the end of the limit")
				turn := s.talk().say("m-1", "how is it?")
				require.Contains(t, turn.Failure, "no session starts before its end at "+wait.Until.UTC().Format("Jan 2, 15:04 UTC"))
				require.Len(t, asked(), calls)
				for _, id := range []string{run.GetID(), second.GetID()} {
					require.NoError(t, s.client.TerminateWorkflow(t.Context(), id, "", "seen"))
				}
			},
		},
		"the limit of a model": {
			scenario: claudesim.Play(
				claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Conclude(asksFor(2))),
				claudesim.Always(claudesim.LimitedBy("seven_day_sonnet", until))),
			env: append(gate, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-scripted"),
			check: func(t *testing.T, s *site, asked func() []claudesim.Request) {
				waits := func(id string, input any) escalation.Chain {
					run := s.startAs(nameOf(t)+id, input)
					require.Eventually(t, func() bool {
						chain, ok := s.tryQuery(run)
						return ok && chain.Wait != nil && chain.Wait.Rule == escalation.RuleAccountLimit
					}, testTimeout, 50*time.Millisecond)
					chain := s.query(run)
					require.Contains(t, chain.Wait.Reason, "the limit of the account for sonnet at the model's provider is used up")
					t.Cleanup(func() { _ = s.client.TerminateWorkflow(context.WithoutCancel(t.Context()), run.GetID(), "", "seen") })
					return chain
				}
				require.Len(t, waits("-look", nil).Sessions, 2)
				require.Empty(t, waits("-repair", map[string]any{"start_tier": 2, "prompt": "restart it"}).Sessions)
				look, err := s.finish(s.startAs(nameOf(t)+"-second", nil))
				require.NoError(t, err)
				require.Equal(t, escalation.SessionCompleted, look.Sessions[0].Status, "looks go on with another model")
				require.Equal(t, escalation.OutcomeKnown, look.Outcome, look.Reason)
				repairs := slices.DeleteFunc(asked(), func(r claudesim.Request) bool { return !strings.Contains(r.Model, "sonnet") })
				require.Len(t, repairs, 1, "no session starts before the end of the limit that it would meet")
			},
		},
		"a conversation that the provider refuses": {
			scenario: claudesim.Play(
				claudesim.On(claudesim.Match{Prompt: "what do you see?"}, claudesim.Conclude(escalation.TalkReply{Reply: "all is well"})),
				claudesim.On(claudesim.Match{Prompt: "and now?"}, claudesim.Fail(400, "messages.3: it is poisoned")),
				claudesim.Always(claudesim.Conclude(escalation.TalkReply{Reply: "all is well"}))),
			check: func(t *testing.T, s *site, _ func() []claudesim.Request) {
				c := s.talk()
				require.Equal(t, "all is well", c.say("m-1", "what do you see?").Reply)
				second := c.say("m-2", "and now?")
				require.Equal(t, "all is well", second.Reply, second.Failure)
				require.Contains(t, second.Note, "could not be continued (the API call failed: API Error: 400 messages.3: it is poisoned)")
				require.Contains(t, second.Note, "the last turn in short")
				third := c.say("m-3", "thanks")
				require.Empty(t, third.Note+third.Failure, "it goes on")
				require.Equal(t, "all is well", third.Reply)
				c.end()
			},
		},
		"a key that the provider refuses": {
			env:      append(gate, "ANTHROPIC_API_KEY=expired"),
			scenario: claudesim.Play(claudesim.Always(claudesim.Fail(401, "invalid x-api-key"))),
			check: func(t *testing.T, s *site, asked func() []claudesim.Request) {
				run := s.start(nil)
				gate := s.awaitGate(run.GetID(), "gate-1")
				require.Contains(t, gate.Reason, "the model's API refuses the credentials in ANTHROPIC_API_KEY (401): correct the variable")
				if strings.Contains(t.Name(), "/real/") { // the stand-in makes no pauses
					require.LessOrEqual(t, len(asked()), 3, "the CLI would try for half a minute")
				}
				require.NoError(t, s.client.TerminateWorkflow(t.Context(), run.GetID(), "", "seen"))
			},
		},
	}
}

// TestEndings holds a whole installation against each way to say no: with the stand-in, and with
// the newest real CLI. `make contract` runs it with all real CLIs.
func TestEndings(t *testing.T) {
	t.Parallel()
	for name, tt := range endingCases() {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			t.Run("stand-in", func(t *testing.T) {
				t.Parallel()
				path := simtest.Install(t, tt.scenario)
				s := startSite(t, startTemporal(t), environment(t, path, append(slices.Clip(tt.env), patient)...))
				tt.check(t, s, func() []claudesim.Request { return simtest.Requests(t, path) })
			})
			t.Run("real", func(t *testing.T) {
				t.Parallel()
				for _, version := range simtest.NewestVersions(t) {
					t.Run(simtest.Number(t, version), func(t *testing.T) {
						t.Parallel()
						cli, api := simtest.RealCLI(t, version), simtest.StartAPI(t, tt.scenario)
						env := append([]string{"ANTHROPIC_BASE_URL=" + api.URL(), "ANTHROPIC_API_KEY=not-a-key"}, tt.env...)
						s := startSite(t, startTemporal(t), environment(t, cli, append(env, patient)...))
						tt.check(t, s, api.Requests)
					})
				}
			})
		})
	}
}

// TestManagedSettings lets the real CLIs make a call under managed settings that switch off the guard's hooks. The call
// is refused, and the end of the session names managed settings. The CLI finds them in a copy of /etc.
func TestManagedSettings(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"disableAllHooks", "allowManagedHooksOnly"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			for _, version := range simtest.NewestVersions(t) {
				t.Run(simtest.Number(t, version), func(t *testing.T) {
					t.Parallel()
					marker := filepath.Join(t.TempDir(), "made")
					cli := underManagedSettings(t, simtest.RealCLI(t, version), `{"`+key+`":true}`)
					api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(claudesim.Bash("touch "+marker), claudesim.Conclude(allWell()))))
					s := startSite(t, startTemporal(t), environment(t, cli, patient, "ANTHROPIC_BASE_URL="+api.URL(), "ANTHROPIC_API_KEY=not-a-key",
						"CLAUDEOPS_TIER1_TOOLS=Bash"))
					chain, err := s.finish(s.start(nil))
					require.NoError(t, err)
					require.NoFileExists(t, marker, "the call is refused")
					require.Equal(t, escalation.EndingGuard, chain.Sessions[0].Ending, chain.Reason)
					require.Contains(t, chain.Reason, "managed settings")
					t.Log(chain.Reason)
				})
			}
		})
	}
}

// underManagedSettings returns a program that starts the CLI with other managed settings.
func underManagedSettings(t *testing.T, cli, settings string) string {
	t.Helper()
	etc, wrapper := t.TempDir(), filepath.Join(t.TempDir(), "claude")
	for _, name := range []string{"passwd", "group", "resolv.conf", "hosts", "nsswitch.conf"} {
		if content, err := os.ReadFile(filepath.Join("/etc", name)); err == nil {
			require.NoError(t, os.WriteFile(filepath.Join(etc, name), content, 0o644))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(etc, "claude-code"), 0o755)) //nolint:gosec // as in /etc
	require.NoError(t, os.WriteFile(filepath.Join(etc, "claude-code", "managed-settings.json"), []byte(settings), 0o644))
	inside := fmt.Sprintf("mount --bind %s /etc && exec %s \"$@\"", etc, cli)
	script := "#!/bin/sh\nexec unshare --user --map-root-user --mount sh -c '" + inside + "' sh \"$@\"\n"
	require.NoError(t, os.WriteFile(wrapper, []byte(script), 0o755))
	if out, err := exec.CommandContext(t.Context(), wrapper, "--version").CombinedOutput(); err != nil {
		require.Empty(t, os.Getenv("CI"), "this host allows no mount namespace: %v: %s", err, out)
		t.Skipf("this host allows no mount namespace: %v: %s", err, out)
	}
	return wrapper
}
