package systemtest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestConversationRealCLI holds a conversation of two turns with the real CLI. Only the model is scripted.
func TestConversationRealCLI(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Prompt: "first?"}, claudesim.Bash("echo seen"), claudesim.Conclude(escalation.TalkReply{Reply: "one"})),
			claudesim.On(claudesim.Match{Prompt: "second?"}, claudesim.Conclude(escalation.TalkReply{
				Reply: "two", Proposals: []escalation.Proposal{{Kind: escalation.ProposeChain, Why: "to see"}},
			}))))
		s := startSite(t, startTemporal(t), environment(t, cli, append(toolsAllowed(),
			"ANTHROPIC_BASE_URL="+api.URL(), "ANTHROPIC_API_KEY=not-a-key")...))
		c := s.talk()
		first := c.say("m-1", "first?")
		require.Equal(t, "one", first.Reply, first.Failure)
		second := c.say("m-2", "second?")
		require.Equal(t, "two", second.Reply, second.Failure)
		require.Len(t, second.Proposals, 1)
		require.Empty(t, second.Note)
		requests := api.Requests()
		last := requests[len(requests)-1]
		require.Contains(t, strings.Join(last.Prompts(), "\n"), "first?", "the conversation goes on")
		require.Contains(t, strings.Join(last.ToolResults(), "\n"), "seen")
		sessions := c.sessionsOf(s.records())
		require.Len(t, sessions, 2)
		require.Equal(t, sessions[0].ID, sessions[1].ParentID)
		require.Equal(t, escalation.ContinuityResume, sessions[1].Continuity)
		c.end()
	})
}
