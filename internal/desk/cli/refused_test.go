package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// refusedRule is a rule of a file in testdata/refused: what a request must contain, and the API's answer. The first
// rule that matches wins.
type refusedRule struct {
	Name, Model, Has string
	Do               struct {
		Text, Stop string
		So         any // the input of the tool StructuredOutput
		In, Out    int // tokens
		Status     int
		Etype      string // follows from the status
		Emsg       string
		Headers    map[string]string // those of a limit
	}
}

// refusedCase reads a file of testdata/refused. The limit in it ends at the time until.
func refusedCase(t *testing.T, name string, until time.Time) claudesim.Scenario {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "refused", name+".json"))
	require.NoError(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	var rules []refusedRule
	require.NoError(t, decoder.Decode(&rules))
	var turns []claudesim.Turn
	for _, rule := range rules {
		reply := claudesim.Reply{Text: rule.Do.Text, Stop: rule.Do.Stop, Structured: rule.Do.So}
		if rule.Do.In+rule.Do.Out > 0 {
			reply.Usage = &claudesim.Usage{Input: rule.Do.In, Output: rule.Do.Out}
		}
		if rule.Do.Status != 0 {
			reply = claudesim.Fail(rule.Do.Status, rule.Do.Emsg)
		}
		if reset := rule.Do.Headers["anthropic-ratelimit-unified-reset"]; reset != "" {
			_, err := strconv.ParseInt(reset, 10, 64)
			require.NoError(t, err)
			reply.Error.LimitedUntil, reply.Error.LimitKind = until.Unix(), rule.Do.Headers["anthropic-ratelimit-unified-representative-claim"]
		}
		turns = append(turns, claudesim.On(claudesim.Match{Model: rule.Model, Anywhere: rule.Has}, reply).Named(rule.Name))
	}
	return claudesim.Play(turns...)
}

// refusedInstallation is an installation whose provider answers as a file says.
type refusedInstallation struct {
	environ []string
	api     *claudesim.API
}

// run runs claudeops, and returns its exit code and all that it has printed.
func (r refusedInstallation) run(t *testing.T, args ...string) (program.ExitCode, string) {
	t.Helper()
	ran := starter(t, r.environ, args...)
	t.Logf("claudeops %s: %d\n%s%s", strings.Join(args, " "), ran.Code, ran.Stdout, ran.Stderr)
	return ran.Code, ran.Stdout + ran.Stderr
}

// chain returns a chain as soon as it is as it should be.
func (r refusedInstallation) chain(t *testing.T, id string, is func(escalation.Chain) bool) (chain escalation.Chain) {
	t.Helper()
	require.Eventually(t, func() bool {
		shown := starter(t, r.environ, "chain", id, "-o", "json")
		chain = escalation.Chain{}
		return json.Unmarshal([]byte(shown.Stdout), &chain) == nil && is(chain)
	}, clitest.Timeout, clitest.Look)
	return chain
}

func ended(chain escalation.Chain) bool { return chain.Outcome != "" }

// TestRefusedCases runs the commands of each file in testdata/refused against the real CLI.
func TestRefusedCases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts Temporal servers and the real CLI; not with -short")
	}
	until := time.Now().Add(3 * time.Hour)
	for name, tt := range map[string]struct {
		environ []string
		check   func(t *testing.T, r refusedInstallation)
	}{
		"resume-refused": {nil, func(t *testing.T, r refusedInstallation) {
			t.Helper()
			code, _ := r.run(t, "run", "--id", "refused", "--wait", "--yes", "-s", "jellyfin")
			require.Equal(t, program.ExitOK, code)
			chain := r.chain(t, "refused", ended)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "no person is needed, so there is no gate to answer")
			require.Len(t, chain.Sessions, 3)
			require.Equal(t, escalation.EndingUnusable, chain.Sessions[1].Ending)
			require.Equal(t, escalation.ContinuityHandoff, chain.Sessions[2].Continuity)
		}},
		"talk-refused": {nil, func(t *testing.T, r refusedInstallation) {
			t.Helper()
			// The file refuses each request with the answer's words. So a new conversation is refused, too, if it
			// learns of the earlier turns.
			for n, message := range []string{"POISONTALK how is alpha?", "POISONTALK and now?", "POISONTALK once more?"} {
				code, printed := r.run(t, "talk", "poison", "--message", message)
				require.Equal(t, program.ExitOK, code, "message %d", n+1)
				require.Contains(t, printed, "Alpha is well.", "message %d", n+1)
				require.Equal(t, n > 0, strings.Contains(printed, "This is a new conversation, because the one before could not be continued"), n)
			}
		}},
		"refusal": {nil, func(t *testing.T, r refusedInstallation) {
			t.Helper()
			code, printed := r.run(t, "run", "--id", "refused", "--wait", "--yes", "--prompt", "REFUSEME")
			require.Equal(t, console.ExitChainFailed, code)
			require.Contains(t, printed, "the model refused, after the words “I”")
			chain := r.chain(t, "refused", ended)
			require.Len(t, chain.Sessions, 1)
			require.Equal(t, 1, chain.Sessions[0].Attempts)
			require.LessOrEqual(t, len(r.api.Requests()), 2, "the new CLI itself asks twice")
		}},
		"max-output": {nil, func(t *testing.T, r refusedInstallation) {
			t.Helper()
			code, printed := r.run(t, "run", "--id", "refused", "--wait", "--yes", "--prompt", "LONGANSWER")
			require.Equal(t, console.ExitChainFailed, code)
			require.Contains(t, printed, "longer than the model may write")
			chain := r.chain(t, "refused", ended)
			require.Len(t, chain.Sessions, 1)
			require.Equal(t, 1, chain.Sessions[0].Attempts)
			require.Len(t, r.api.Requests(), 8, "four of the CLI, and four more for the one request for a shorter answer")
		}},
		"usage-limit": {
			[]string{"ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-scripted", "CLAUDEOPS_GATE_TIMEOUT=1h"},
			func(t *testing.T, r refusedInstallation) {
				t.Helper()
				waits := func(chain escalation.Chain) bool { return chain.Wait != nil }
				r.run(t, "run", "--id", "first", "--yes", "--prompt", "LIMITED")
				first := r.chain(t, "first", waits)
				require.Equal(t, escalation.RuleAccountLimit, first.Wait.Rule)
				require.WithinDuration(t, until, first.Wait.Until, 5*time.Minute)
				require.Len(t, first.Sessions, 1)
				require.Equal(t, 1, first.Sessions[0].Attempts)
				calls := len(r.api.Requests())
				_, printed := r.run(t, "run", "--id", "second", "--yes", "--prompt", "LIMITED")
				require.Contains(t, printed, "It waits: ")
				require.Empty(t, r.chain(t, "second", waits).Sessions)
				_, printed = r.run(t, "talk", "limited", "--message", "how is it?")
				require.Contains(t, printed, "no session starts before its end at "+first.Wait.Until.UTC().Format("Jan 2, 15:04 UTC"))
				require.Len(t, r.api.Requests(), calls, "nobody asks before the end of the limit")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, version := range simtest.NewestVersions(t) {
				t.Run(simtest.Number(t, version), func(t *testing.T) {
					t.Parallel()
					api := simtest.StartAPI(t, refusedCase(t, name, until))
					environ := startInstalled(t, simtest.RealCLI(t, version), append([]string{
						"ANTHROPIC_API_KEY=not-a-key", "ANTHROPIC_BASE_URL=" + api.URL(), "CLAUDEOPS_HEARTBEAT_INTERVAL=10s",
					}, tt.environ...)...)
					tt.check(t, refusedInstallation{environ, api})
				})
			}
		})
	}
}
