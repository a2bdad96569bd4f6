package operations

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/workflows"
)

// TestTurnEvents looks at a turn from its waiting to its end.
func TestTurnEvents(t *testing.T) {
	t.Parallel()
	look := func(state escalation.TalkState, text string, tools ...activities.ToolCall) LiveConversation {
		now := LiveConversation{ConversationState: workflows.ConversationState{Turns: []workflows.ConversationTurn{
			{Turn: 1, State: escalation.TalkAnswered}, {Turn: 2, State: escalation.TalkRunning}, {Turn: 3, State: state},
		}}}
		if state == escalation.TalkRunning {
			now.Turns[1].State = escalation.TalkFailed
			now.Progress = &activities.TierProgress{Now: activities.AgentProgress{Text: text, Tools: tools, CostUSD: 0.5}}
		}
		return now
	}
	works := func(doing string) TalkEvent { return TalkEvent{Kind: TalkWorks, Doing: doing, CostUSD: 0.5} }
	call := activities.ToolCall{Name: "Bash", Input: "df\x1b[31m"}
	var seen turnEvents
	for i, step := range []struct {
		now  LiveConversation
		err  error
		want []TalkEvent
	}{
		{now: look(escalation.TalkWaiting, ""), want: []TalkEvent{{Kind: TalkWaits, Ahead: 1}}},
		{now: look(escalation.TalkWaiting, "")},
		{err: errors.New("nobody answers"), want: []TalkEvent{{Kind: TalkNobody}}},
		{now: look(escalation.TalkRunning, ""), want: []TalkEvent{works("thinks")}},
		{now: look(escalation.TalkRunning, "", call), want: []TalkEvent{works("Bash  df[31m")}},
		{now: look(escalation.TalkRunning, "The disk ", call), want: []TalkEvent{{Kind: TalkText, Text: "The disk "}}},
		{now: look(escalation.TalkRunning, "The disk ", call)},
		{now: look(escalation.TalkRunning, "The disk is full", call), want: []TalkEvent{{Kind: TalkText, Text: "is full"}}},
		{now: look(escalation.TalkRunning, "", call)},
		{now: look(escalation.TalkRunning, "No: ", call), want: []TalkEvent{{Kind: TalkText, Text: "No: ", Again: true}}},
		{now: look(escalation.TalkAnswered, "")},
		{now: LiveConversation{}},
	} {
		require.Equal(t, step.want, seen.next(step.now, step.err, 3), "step %d", i)
	}
}
