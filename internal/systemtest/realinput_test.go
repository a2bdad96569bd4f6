package systemtest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/servicetest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// TestEndToEndRealInput repairs a service that is really down, with the real CLI and a real Temporal server. Only the
// model is scripted. Tier 1 checks the service with curl and escalates. Tier 2 runs the restart script, checks again
// and concludes.
func TestEndToEndRealInput(t *testing.T) {
	forRealCLIs(t, testRealInput)
}

func testRealInput(t *testing.T, version claudesim.Version, cli string) {
	_, err := exec.LookPath("curl")
	require.NoError(t, err, "the test needs curl: install it")
	workDir := t.TempDir()
	broken := servicetest.Start(t, workDir)
	require.Equal(t, http.StatusBadGateway, broken.Status(t))

	api := simtest.StartAPI(t, repairScript(broken.URL))
	home := filepath.Join(t.TempDir(), "state")
	snapshot := transcriptSnapshot{kept: filepath.Join(home, "conversations"), dir: filepath.Join(workDir, "before")}
	s := startSite(t, startTemporal(t), environment(t, snapshot.inFrontOf(t, cli), append(restartable(t, broken, cli),
		"CLAUDEOPS_STATE_DIR="+home, "CLAUDEOPS_WORK_DIR="+workDir, "CLAUDEOPS_SANDBOX=auto", "CLAUDEOPS_TIER2_TOOLS=Bash,Edit",
		"ANTHROPIC_BASE_URL="+api.URL(), "ANTHROPIC_API_KEY=not-a-key")...))

	chain, err := s.finish(s.start(map[string]any{"services": []string{"jellyfin"}}))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Equal(t, http.StatusOK, broken.Status(t), "the service really runs again")

	require.Len(t, chain.Sessions, 2)
	first, second := chain.Sessions[0], chain.Sessions[1]
	requireSandbox(t, first, second)
	requireWholeConversation(t, api.Requests(), first)
	snapshot.requireUnchanged(t, first.SessionID)
	requireOwnCosts(t, version, api.Requests(), first, second)
	requireRecorded(t, s, chain)
	requireLinked(t, s, first, second)
	requireListed(t, s, chain)
}

// repairScript returns the replies of the model.
func repairScript(serviceURL string) claudesim.Scenario {
	look := "curl -s -o /dev/null -w '%{http_code}' " + serviceURL + " || true"
	return claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash(look).Saying("Looking."), claudesim.Conclude(asksFor(2))),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash("restart-service jellyfin 2>&1 | tail -5"),
			claudesim.Bash(look), claudesim.Conclude(resolved())),
	)
}

// requireWholeConversation checks Tier 2's requests to the API. They must have Tier 2's own model and tools, and all
// prompts, calls and results of Tier 1.
func requireWholeConversation(t *testing.T, requests []claudesim.Request, tier1 escalation.Session) {
	t.Helper()
	var last, opening *claudesim.Request
	for i := range requests {
		request := &requests[i]
		switch {
		case strings.Contains(request.Model, "haiku"):
			last = request
		case strings.Contains(request.Model, "sonnet") && opening == nil:
			opening = request
		}
	}
	require.NotNil(t, last, "Tier 1 never asked the model")
	require.NotNil(t, opening, "Tier 2 never asked its own model")

	require.Equal(t, last.Prompts(), opening.Prompts()[:len(last.Prompts())])
	require.Len(t, opening.Prompts(), len(last.Prompts())+1, "and one prompt more")
	require.Equal(t, toolCalls(*last), toolCalls(*opening)[:len(toolCalls(*last))], "what Tier 1 did")
	require.Contains(t, opening.ToolResults()[0], "502", "what Tier 1 saw")
	require.Contains(t, opening.Text(), tier1.Verdict.Summary, "what Tier 1 concluded")
	require.ElementsMatch(t, []string{"Bash", "Edit", "StructuredOutput"}, opening.Tools, "Tier 2 has its own tools")
	require.ElementsMatch(t, []string{"Bash", "Read", "Grep", "Glob", "StructuredOutput"}, last.Tools, "Tier 1 had its own")

	final := requests[len(requests)-1]
	require.Contains(t, final.ToolResults(), "restarted", "Tier 2 really ran the script")
	require.Contains(t, strings.Join(final.ToolResults(), "\n"), "200", "Tier 2 really looked again")
}

// toolCalls lists the tool calls of a conversation, each with its input.
func toolCalls(request claudesim.Request) []string {
	var calls []string
	for _, message := range request.Messages {
		for _, block := range message.Blocks {
			if block.Type == claudesim.BlockToolUse {
				calls = append(calls, block.Name+" "+string(block.Input))
			}
		}
	}
	return calls
}

// requireOwnCosts checks that each record holds only what its own process has spent. The scripted API counts the same
// tokens for every call, so their sums are known exactly.
func requireOwnCosts(t *testing.T, version claudesim.Version, requests []claudesim.Request, first, second escalation.Session) {
	t.Helper()
	for _, session := range []escalation.Session{first, second} {
		calls := 0
		for i := range requests {
			if strings.Contains(requests[i].Model, session.Model) {
				calls++
			}
		}
		usage := claudesim.DefaultUsage()
		require.Equal(t, escalation.TokenUsage{
			Input: calls * usage.Input, Output: calls * usage.Output,
			CacheRead: calls * usage.CacheRead, CacheCreation: calls * usage.CacheCreation,
		}, session.Tokens, "%d calls", calls)
	}
	require.Positive(t, first.CostUSD)
	require.Positive(t, second.CostUSD)
	require.False(t, first.CostEstimated)
	require.False(t, second.CostEstimated)
	require.InDelta(t, first.ReportedTotalUSD, first.CostUSD, 1e-9, "a first session has nothing to carry on")
	require.InDelta(t, second.ReportedTotalUSD, first.CostUSD+second.CostUSD, 1e-9, "the CLI carries the total on")
	for _, session := range []escalation.Session{first, second} {
		require.Positive(t, session.Turns)
		require.Positive(t, session.ContextTokens)
		require.Positive(t, session.ContextWindow)
		require.Equal(t, string(version), session.CLIVersion)
		require.NotEmpty(t, session.Containment)
	}
}

// requireLinked checks that the records are linked in both directions.
func requireLinked(t *testing.T, s *site, first, second escalation.Session) {
	t.Helper()
	records := s.records()
	forward, err := records.Forward(t.Context(), first.ID)
	require.NoError(t, err)
	backward, err := records.Backward(t.Context(), second.ID)
	require.NoError(t, err)
	require.Equal(t, []int64{first.ID, second.ID}, ids(forward))
	require.Equal(t, []int64{second.ID, first.ID}, ids(backward))
	require.Equal(t, first.ID, second.ParentID)
}

func ids(sessions []escalation.Session) []int64 {
	var all []int64
	for i := range sessions {
		all = append(all, sessions[i].ID)
	}
	return all
}

// requireListed checks that the chain can be found by its search attributes.
func requireListed(t *testing.T, s *site, chain escalation.Chain) {
	t.Helper()
	var found *workflowservice.ListWorkflowExecutionsResponse
	require.Eventually(t, func() bool {
		var err error
		found, err = s.client.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: client.DefaultNamespace,
			Query:     "ClaudeOpsOutcome = 'resolved' AND ClaudeOpsTier = 2 AND ClaudeOpsServices = 'jellyfin' AND ClaudeOpsTrigger = 'manual' AND WorkflowId = '" + chain.ID + "'",
		})
		return err == nil && len(found.GetExecutions()) == 1
	}, testTimeout, 100*time.Millisecond, "the chain is not listed")
	require.Equal(t, chain.ID, found.GetExecutions()[0].GetExecution().GetWorkflowId())
	var cost float64
	payload := found.GetExecutions()[0].GetSearchAttributes().GetIndexedFields()[workflows.CostAttribute.GetName()]
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &cost))
	require.InDelta(t, chain.CostUSD, cost, 1e-9)
}

// transcriptSnapshot is a copy of the transcripts that Tier 2 is given, taken before its process starts.
type transcriptSnapshot struct {
	kept string // where the worker keeps its copies
	dir  string // the copy
}

// inFrontOf returns a program that executes cli. If cli is to resume a conversation, the program takes the snapshot
// first.
func (s transcriptSnapshot) inFrontOf(t *testing.T, cli string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "claude-and-snapshot")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" --resume \"*) cp -r \"$CLAUDE_CONFIG_DIR/projects\" '%s' ;; esac\nexec '%s' \"$@\"\n", s.dir, cli)
	require.NoError(t, process.WriteProgram(program, []byte(script)))
	return program
}

// requireUnchanged checks that the transcript of sessionID has not changed since the snapshot.
func (s transcriptSnapshot) requireUnchanged(t *testing.T, sessionID string) {
	t.Helper()
	read := func(pattern string) string {
		files, err := filepath.Glob(filepath.Join(pattern, sessionID+".jsonl"))
		require.NoError(t, err)
		require.Len(t, files, 1, "in %s", pattern)
		data, err := os.ReadFile(files[0])
		require.NoError(t, err)
		require.NotEmpty(t, data)
		return string(data)
	}
	require.Equal(t, read(filepath.Join(s.dir, "*")), read(s.kept), "Tier 2 wrote into Tier 1's transcript")
}

// TestEndToEndVerdictRepaired lets the model end without its verdict. The real CLI itself asks for it once. Then the
// supervisor asks again in the same conversation.
func TestEndToEndVerdictRepaired(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Prompt: "verdict of this session is missing"}, claudesim.Conclude(allWell())),
			claudesim.Always(claudesim.Say("All is well, I would say."))))
		s := startSite(t, startTemporal(t), environment(t, cli, "ANTHROPIC_BASE_URL="+api.URL(), "ANTHROPIC_API_KEY=not-a-key"))
		chain, err := s.finish(s.start(nil))
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, "%s %+v", chain.Reason, chain.Last().Verdict)
		require.Len(t, chain.Sessions, 1, "both are one session")
		requireRecorded(t, s, chain)
		requests := api.Requests()
		require.Len(t, requests[len(requests)-1].Prompts(), 2)
		require.False(t, requests[len(requests)-1].Offers("Bash"), "it was to do no further work")
	})
}
