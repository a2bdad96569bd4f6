package escalation

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// MaxTalkText limits a person's message, in characters.
	MaxTalkText = 16_000
	// MaxMessageID limits the ID of a message, in bytes.
	MaxMessageID = 100
	// MaxConversationName limits the name of a conversation, in bytes.
	MaxConversationName = 100
	// ConversationPrefix begins the workflow ID of every conversation, and of nothing else.
	ConversationPrefix = "conversation-"
)

// IsConversation reports whether a workflow ID belongs to a conversation. Chains never have such an ID.
func IsConversation(workflowID string) bool { return strings.HasPrefix(workflowID, ConversationPrefix) }

// TalkMessage is a message of a person in a conversation.
type TalkMessage struct {
	// MessageID is the sender's ID of the message. A message with a known ID is answered only once.
	MessageID string `json:"message_id"`
	Text      string `json:"text"`
	// Actor names the person who sends the message.
	Actor string `json:"actor"`
	// After is the turn whose answer the message follows; 0 if it follows none, and nil if it follows the latest answer.
	// With it, a person goes back to an earlier answer.
	After *int `json:"after,omitempty"`
}

// Validate returns the first error in the message, as one sentence. If the message is valid, it returns nil.
func (m TalkMessage) Validate() error {
	length := utf8.RuneCountInString(m.Text)
	switch {
	case blank(m.MessageID):
		return errors.New("message_id is empty: give each message an ID of its own, and the same ID when you send it again")
	case len(m.MessageID) > MaxMessageID || !plaintext.IsLine(m.MessageID):
		return fmt.Errorf("message_id must be at most %d printable bytes on one line", MaxMessageID)
	case blank(m.Text):
		return errors.New("text is empty: write a message")
	case length > MaxTalkText:
		return fmt.Errorf("text has %d characters, and at most %d are allowed", length, MaxTalkText)
	case m.After != nil && *m.After < 0:
		return errors.New("after is negative: name an earlier turn, or 0 to begin anew")
	}
	return CheckActor(m.Actor)
}

var conversationName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckConversationName returns an error if name is not a valid name of a conversation. The error is one sentence.
func CheckConversationName(name string) error {
	if len(name) > MaxConversationName || !conversationName.MatchString(name) {
		return fmt.Errorf("%q is no name of a conversation: use at most %d letters, digits, dots, underscores and hyphens",
			plaintext.Cut(plaintext.Line(name), 60), MaxConversationName)
	}
	return nil
}

// OwnConversation stands for the name of the caller's own conversation in requests to the API. No conversation can have this name.
const OwnConversation = "@me"

// aboutPrefix begins the names of the conversations about chains.
const aboutPrefix = "about-"

var notInConversationName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// AboutChain returns the name of the conversation about a chain.
func AboutChain(chainID string) string { return ConversationName(aboutPrefix + chainID) }

// IsAboutChain reports whether a conversation is named as one about a chain.
func IsAboutChain(name string) bool { return strings.HasPrefix(name, aboutPrefix) }

// ConversationName returns the name that comes closest to a text; empty if none does.
func ConversationName(text string) string {
	name := notInConversationName.ReplaceAllString(text, "-")
	return strings.TrimLeft(name[:min(len(name), MaxConversationName)], "-._")
}

// TalkState is the state of a turn of a conversation.
type TalkState string

// The states. All except TalkWaiting and TalkRunning are final.
const (
	TalkWaiting  TalkState = "waiting"  // other turns come first
	TalkRunning  TalkState = "running"  // its session runs
	TalkAnswered TalkState = "answered" // has a reply
	TalkFailed   TalkState = "failed"   // has a sentence that says why there is no reply
	TalkStopped  TalkState = "stopped"  // a person stopped it
)

// Final reports whether a turn in this state has ended.
func (s TalkState) Final() bool { return s == TalkAnswered || s == TalkFailed || s == TalkStopped }

// TalkTurn is the record of one turn of a conversation: a person's message and what came of it.
type TalkTurn struct {
	// ConversationID is the workflow ID of the conversation, and Turn is the number of the turn in it, from 1.
	ConversationID string `json:"conversation_id"`
	Turn           int    `json:"turn"`

	TalkMessage

	ReceivedAt time.Time `json:"received_at"`
	State      TalkState `json:"state"`
	// SessionID is the conversation of the turn's latest session; empty if none has begun.
	SessionID string `json:"session_id,omitempty"`
	// Context is the text that the session got in addition to the message.
	Context string `json:"context,omitempty"`

	TalkReply

	// Note says what was lost and what was kept, if the turn could not continue the conversation; usually empty.
	Note string `json:"note,omitempty"`
	// Failure says why there is no reply; empty if there is one.
	Failure string    `json:"failure,omitempty"`
	CostUSD float64   `json:"cost_usd"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Confirmed lists the proposals that a person has confirmed.
	Confirmed []Confirmation `json:"confirmed,omitempty"`
}

// Confirmation records that a person has confirmed a proposal.
type Confirmation struct {
	// Proposal is the number of the proposal in its reply, from 1.
	Proposal int       `json:"proposal"`
	Actor    string    `json:"actor"`
	At       time.Time `json:"at"`
	// Result says in a sentence what was done; empty while it is being done.
	Result string `json:"result,omitempty"`
}

// TalkSession names a session of a turn.
type TalkSession struct {
	ConversationID string
	Turn           int
	SessionID      string
}

// TalkEnd is the end of a turn without the reply, which the session has stored.
type TalkEnd struct {
	State   TalkState `json:"state"`
	Note    string    `json:"note,omitempty"`
	Failure string    `json:"failure,omitempty"`
	CostUSD float64   `json:"cost_usd"`
	EndedAt time.Time `json:"ended_at"`
}

// TalkOpening holds what the records know of a conversation that begins again, for example after it was terminated.
type TalkOpening struct {
	// Last is the session of the latest answered turn; nil if there is none.
	Last *Session `json:"last,omitempty"`
	// Turn is the number of the latest turn; 0 if there is none.
	Turn int `json:"turn,omitempty"`
	// Unanswered lists the turns that have not ended.
	Unanswered []TalkPending `json:"unanswered,omitempty"`
}

// TalkPending is a message that waits for its turn.
type TalkPending struct {
	Turn      int    `json:"turn"`
	MessageID string `json:"message_id"`
	// Head is the beginning of the message.
	Head string `json:"head,omitempty"`
	// After is the field After of the message.
	After *int `json:"after,omitempty"`
}

// TalkStored says what became of a message that was stored.
type TalkStored struct {
	// Turn is the number of the message's turn.
	Turn int `json:"turn"`
	// Ended reports whether the turn has ended: the message was stored before, and an earlier turn has dealt with it.
	Ended bool `json:"ended,omitempty"`
	// Missed lists turns between the latest one that the conversation knew and this one that have not ended. There are some if a
	// workflow task was lost after it had stored a message.
	Missed []TalkPending `json:"missed,omitempty"`
}

// MaxTalkHead limits the beginning of a message that a conversation's workflow keeps, in characters.
const MaxTalkHead = 60

// TalkHead returns the beginning of a text on one line.
func TalkHead(text string) string { return plaintext.Cut(plaintext.Compact(text), MaxTalkHead) }
