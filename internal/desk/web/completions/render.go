package completions

import (
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/markdown"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// progressMark begins a line that says what the session does. Such lines are no part of the answer.
	progressMark = "> ▸ "
	// maxLine limits one line about a session, in characters.
	maxLine = 500
	// maxProposal limits one line about a proposal, in characters. It is more than a valid one has: nobody confirms
	// what is not shown.
	maxProposal = 20_000
)

// render returns the text of an answered turn: the reply, what was lost, and the proposals with the way to confirm
// them.
func render(turn escalation.TalkTurn) string {
	text := markdown.Close(strings.TrimSpace(defuse(turn.Reply)))
	if turn.Note != "" {
		text += "\n\n*" + oneLine(turn.Note) + "*"
	}
	if len(turn.Proposals) == 0 {
		return text
	}
	text += "\n\n**Proposed, and not done:**\n"
	for i, proposal := range turn.Proposals {
		text += fmt.Sprintf("\n%d. %s", i+1, plaintext.ForMarkdown(plaintext.Cut(proposal.Describe(), maxProposal)))
		if proposal.Why != "" {
			text += " (why: " + oneLine(proposal.Why) + ")"
		}
	}
	return text + fmt.Sprintf("\n\nTo have one done in your name: `claudeops talk %s --turn %d --confirm N`",
		strings.TrimPrefix(turn.ConversationID, escalation.ConversationPrefix), turn.Turn)
}

// oneLine returns a text as one line without markup.
func oneLine(text string) string { return plaintext.ForMarkdown(plaintext.Cut(text, maxLine)) }

// parts turns a growing reply into the parts of its text in Markdown. A line is passed on when it is complete.
type parts struct {
	reply, sent string
}

// add adds the next part of a reply. If again is set, the reply begins anew. It returns the text that can be passed on.
func (p *parts) add(text string, again bool) string {
	if again {
		p.reply = ""
	}
	p.reply += text
	ready := defuse(p.reply[:strings.LastIndex(p.reply, "\n")+1])
	next, more := strings.CutPrefix(ready, p.sent)
	if !more {
		return "" // the reply has changed: end sees to it
	}
	p.sent = ready
	return next
}

// end returns the text that is missing of an answered turn. If the reply has changed while it was passed on, that is
// the whole text.
func (p *parts) end(turn escalation.TalkTurn) string {
	text := render(turn)
	if rest, ok := strings.CutPrefix(text, strings.TrimRight(p.sent, "\n")); ok {
		return strings.TrimPrefix(rest, p.sent[len(strings.TrimRight(p.sent, "\n")):])
	}
	return "\n\n---\n\n" + text
}
