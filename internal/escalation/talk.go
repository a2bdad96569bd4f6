package escalation

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
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
	// MessageID is the sender's ID of the message. A message that is sent again with its ID is answered only once. The
	// ID belongs to that text of that person: another message with it is refused.
	MessageID string `json:"message_id"`
	Text      string `json:"text"`
	// Actor names the person who sends the message.
	Actor string `json:"actor"`
	// After is the turn whose answer the message follows; 0 if it follows none, and nil if it follows the latest
	// answer. With it, a person goes back to an earlier answer.
	After *int `json:"after,omitempty"`
	// About is the chain from whose last session the conversation began, or must begin; empty if the sender does not
	// mind, and in the records if it began from nothing.
	About string `json:"about,omitempty"`
	// Key is the fingerprint of the message and of everything that was said before it, from a client that sends a
	// history with each message; empty from other clients. Messages can share a key.
	Key string `json:"key,omitempty"`
}

// Digest returns a fingerprint of the text and its sender, which tells two messages with the same ID apart.
func (m TalkMessage) Digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(m.Actor), m.Actor, m.Text))
	return hex.EncodeToString(sum[:8])
}

// Validate returns the first error in the message, as one sentence. If the message is valid, it returns nil.
func (m TalkMessage) Validate() error {
	length := utf8.RuneCountInString(m.Text)
	switch {
	case blank(m.MessageID):
		return errors.New("message_id is empty: give each message an ID of its own, and the same ID when you send it " +
			"again")
	case len(m.MessageID) > MaxMessageID || !plaintext.IsLine(m.MessageID):
		return fmt.Errorf("message_id must be at most %d printable bytes on one line", MaxMessageID)
	case blank(m.Text):
		return errors.New("text is empty: write a message")
	case length > MaxTalkText:
		return fmt.Errorf("text has %d characters, and at most %d are allowed", length, MaxTalkText)
	case len(m.Key) > MaxMessageID || !plaintext.IsLine(m.Key):
		return fmt.Errorf("key must be at most %d printable bytes on one line", MaxMessageID)
	case IsConversation(m.About):
		return errors.New("about names a conversation, and must name a chain")
	case m.After != nil && *m.After < 0:
		return errors.New("after is negative: name an earlier turn, or 0 to begin anew")
	}
	return CheckActor(m.Actor)
}

var conversationName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// CheckConversationName returns an error if name is not a valid name of a conversation. The error is one sentence.
func CheckConversationName(name string) error {
	if len(name) > MaxConversationName || !conversationName.MatchString(name) {
		return fmt.Errorf("%q is no name of a conversation: use at most %d letters, digits, dots, underscores and "+
			"hyphens",
			plaintext.Cut(plaintext.Line(name), 60), MaxConversationName)
	}
	return nil
}

// OwnConversation stands for the name of the caller's own conversation in requests to the API. No conversation can have
// this name.
const OwnConversation = "@me"

// The prefixes of the names of conversations that are not named as a person.
const (
	// aboutPrefix begins the names of the conversations about chains.
	aboutPrefix = "about-"
	// ChatPrefix begins the names of the conversations of clients of OpenAI's API.
	ChatPrefix = "chat-"
	// personPrefix begins the names of the conversations of people whose own name cannot be used.
	personPrefix = "person-"
)

var (
	notInConversationName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	// summed matches the names that withSum returns.
	summed = regexp.MustCompile(`-[0-9a-f]{32}$`)
)

// AboutChain returns the name of the conversation about a chain. Two chains never have the same.
func AboutChain(chainID string) string {
	name := aboutPrefix + chainID
	if CheckConversationName(name) != nil || summed.MatchString(name) {
		return withSum(aboutPrefix, chainID)
	}
	return name
}

// IsAboutChain reports whether a conversation is named as one about a chain.
func IsAboutChain(name string) bool { return strings.HasPrefix(name, aboutPrefix) }

// PersonalConversation returns the name of a person's own conversation: the person's name or, if no conversation can
// have that name or others could, a name with a checksum. Two people never have the same, even if they choose their
// names.
func PersonalConversation(person string) string {
	reserved := func(prefix string) bool { return strings.HasPrefix(person, prefix) }
	if CheckConversationName(person) != nil || slices.ContainsFunc([]string{aboutPrefix, ChatPrefix, personPrefix},
		reserved) {
		return withSum(personPrefix, person)
	}
	return person
}

// withSum returns a name for a text: the prefix, what a name can have of the text, and a checksum of the text.
func withSum(prefix, text string) string {
	readable := strings.Trim(notInConversationName.ReplaceAllString(text, "-"), "-._")
	if readable = readable[:min(len(readable), MaxConversationName/2)]; readable != "" {
		readable += "-"
	}
	sum := sha256.Sum256([]byte(text))
	return prefix + readable + hex.EncodeToString(sum[:16])
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
	// Context is the text that the session got in addition to the message, and SeenAt is the time at which that text
	// was true. What has changed since is unknown to the session.
	Context string    `json:"context,omitempty"`
	SeenAt  time.Time `json:"seen_at,omitzero"`

	TalkReply

	// Note says what was lost and what was kept, if the turn could not continue the conversation; usually empty.
	Note string `json:"note,omitempty"`
	// Failure says why there is no reply; empty if there is one.
	Failure string `json:"failure,omitempty"`
	Cost

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
	Cost

	EndedAt time.Time `json:"ended_at"`
}

// TalkOpening holds what the records know of a conversation that begins again, for example after it was terminated.
type TalkOpening struct {
	// Last is the session of the latest answered turn; nil if there is none.
	Last *Session `json:"last,omitempty"`
	// About is the chain that the conversation is about; empty if it is about none.
	About string `json:"about,omitempty"`
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
	// Actor is the person who has sent the message.
	Actor string `json:"actor,omitempty"`
	// After is the field After of the message.
	After *int `json:"after,omitempty"`
}

// TalkStored says what became of a message that was stored.
type TalkStored struct {
	// Turn is the number of the message's turn.
	Turn int `json:"turn"`
	// Ended reports whether the turn has ended: the message was stored before, and an earlier turn has dealt with it.
	Ended bool `json:"ended,omitempty"`
	// Other reports that the ID belongs to another message, which has that turn. Nothing was stored.
	Other bool `json:"other,omitempty"`
	// Missed lists turns between the latest one that the conversation knew and this one that have not ended. There are
	// some if a workflow task was lost after it had stored a message.
	Missed []TalkPending `json:"missed,omitempty"`
}

// MaxTalkHead limits the beginning of a message that a conversation's workflow keeps, in characters.
const MaxTalkHead = 60

// TalkHead returns the beginning of a text on one line.
func TalkHead(text string) string { return plaintext.Cut(plaintext.Compact(text), MaxTalkHead) }
