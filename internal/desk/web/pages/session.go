package pages

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
)

// sessionPage is the data of the page of a session.
type sessionPage struct {
	operations.SessionDetail

	Turns []turn
}

// turn is a message of the conversation, with the results of its calls.
type turn struct {
	operations.Message

	Calls []callWithResult
}

// maxUnfolded is the longest text of the supervisor that is shown unfolded, in bytes. Its prompts have pages.
const maxUnfolded = 600

// Folded reports whether the text is folded, because it is long and not the agent's.
func (t turn) Folded() bool { return t.Role != operations.RoleAssistant && len(t.Text) > maxUnfolded }

// callWithResult is a call with its result.
type callWithResult struct {
	operations.MessageCall

	// Result is nil if the conversation has no result of the call.
	Result *operations.MessageResult
	// Denied is the reason why the guard has denied the call; empty if it has not.
	Denied string
}

// showSession shows a session.
func (p *Pages) showSession(w http.ResponseWriter, r *http.Request) error {
	number, err := strconv.ParseInt(r.PathValue("number"), 10, 64)
	if err != nil {
		return operations.Invalid(fmt.Errorf("%q is no session: write its number", r.PathValue("number")))
	}
	detail, err := p.sessions.Get(r.Context(), number)
	if err != nil {
		return err
	}
	return p.show(w, r, view{
		template: "session", title: fmt.Sprintf("Session #%d", number), section: "/chains",
		chain: detail.Session.ChainID, parts: []string{"session"}, data: sessionPage{detail, turnsOf(detail)},
	})
}

// turnsOf puts the results of calls beside their calls, and leaves out the messages that held only results.
func turnsOf(detail operations.SessionDetail) []turn {
	results := map[string]*operations.MessageResult{}
	messages := detail.Conversation.Messages
	for i := range messages {
		for j := range messages[i].Results {
			results[messages[i].Results[j].CallID] = &messages[i].Results[j]
		}
	}
	denied := map[string]string{}
	for _, call := range detail.Calls {
		if !call.Allowed {
			denied[call.Call] = call.Reason
		}
	}
	called := map[string]bool{}
	var turns []turn
	for _, message := range messages {
		next := turn{Message: message}
		for _, call := range message.Calls {
			called[call.ID] = true
			next.Calls = append(next.Calls, callWithResult{call, results[call.ID], denied[call.ID]})
		}
		for i := range message.Results { // the call of a result can be left out of a long conversation
			if result := &message.Results[i]; !called[result.CallID] {
				next.Calls = append(next.Calls, callWithResult{
					operations.MessageCall{Name: "earlier call"},
					result,
					"",
				})
			}
		}
		if next.Text != "" || len(next.Calls) > 0 {
			turns = append(turns, next)
		}
	}
	return turns
}

// Running reports whether the session runs.
func (s sessionPage) Running() bool { return s.Session.Status == escalation.SessionRunning }

// Checks returns the checks of the verdict with those first that found something wrong.
func (s sessionPage) Checks() []escalation.CheckResult {
	if s.Session.Verdict == nil {
		return nil
	}
	var wrong, right []escalation.CheckResult
	for _, check := range s.Session.Verdict.Checks {
		if check.Status == escalation.CheckHealthy {
			right = append(right, check)
		} else {
			wrong = append(wrong, check)
		}
	}
	return append(wrong, right...)
}
