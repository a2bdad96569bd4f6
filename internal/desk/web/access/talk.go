package access

import (
	"fmt"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// ChatPrefix begins the names of the conversations of clients of OpenAI's API.
const ChatPrefix = escalation.ChatPrefix

// Conversation returns the name of the person's own conversation.
func (p Person) Conversation() string { return escalation.PersonalConversation(p.Name) }

// Named returns the name of a conversation for which a request may have escalation.OwnConversation.
func (p Person) Named(conversation string) string {
	if conversation == escalation.OwnConversation {
		return p.Conversation()
	}
	return conversation
}

// MayRead reports whether the person may read a conversation: each one with the role View, and otherwise those in which
// the person may talk.
func (p Person) MayRead(conversation string) bool { return p.May(View) || p.MayTalkIn(conversation) }

// CheckRead returns a *ForbiddenError if the person may not read a conversation.
func (p Person) CheckRead(conversation string) error {
	if p.MayRead(conversation) {
		return nil
	}
	return p.CheckTalk(conversation)
}

// MayTalkIn reports whether the person may write in a conversation. Everybody with the role Talk has a
// conversation of their own, and shares those about chains. The others need the role Operate.
func (p Person) MayTalkIn(conversation string) bool {
	return p.May(Operate) || p.May(Talk) && (conversation == p.Conversation() || escalation.IsAboutChain(conversation))
}

// ForbiddenError is the error of a person whose roles do not suffice.
type ForbiddenError struct{ error }

// CheckTalk returns a *ForbiddenError if the person may not use a conversation.
func (p Person) CheckTalk(conversation string) error {
	if p.MayTalkIn(conversation) {
		return nil
	}
	return &ForbiddenError{fmt.Errorf("conversation %s is not yours: yours is %s, and others need the role %s",
		plaintext.Cut(plaintext.Line(conversation), escalation.MaxConversationName), p.Conversation(), Operate)}
}

// CheckProposal returns a *ForbiddenError if the person may not have a proposal carried out. It needs the role of the
// act itself.
func (p Person) CheckProposal(proposal escalation.Proposal) error {
	role := Operate
	if proposal.Kind == escalation.ProposeAnswer {
		role = Answer
	}
	if p.May(role) {
		return nil
	}
	return &ForbiddenError{fmt.Errorf("you may not have this done: it needs the role %s", role)}
}
