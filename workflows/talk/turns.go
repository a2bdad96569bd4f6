package talk

import (
	"cmp"
	"slices"

	"github.com/claudeops/claudeops/internal/escalation"
)

const (
	// MaxWaitingTurns limits the messages that wait for their turn.
	MaxWaitingTurns = 100
	// maxKnownMessages limits the IDs of messages that a conversation remembers. The records know all of them.
	maxKnownMessages = 200
	// maxShownTurns limits the ended turns in a ConversationState.
	maxShownTurns = 20
)

// talkTurns holds the turns of a conversation: those that wait, the running one, and the latest that have ended.
type talkTurns struct {
	// waiting is sorted by turn.
	waiting []talkTurn
	running *talkTurn
	// known holds the IDs of the latest messages with their turns, oldest first.
	known []KnownMessage
	// latest is the number of the latest turn.
	latest int
	ended  []ConversationTurn
}

// talkTurn is a turn that has not ended.
type talkTurn struct {
	escalation.TalkPending

	// StoppedBy names the person who has stopped the turn; empty if nobody has.
	StoppedBy string `json:"stopped_by,omitempty"`
	// Waits says why the running turn has no session yet; empty if it has one.
	Waits string `json:"-"`
}

// KnownMessage is the ID of a message, and its turn.
type KnownMessage struct {
	MessageID string `json:"message_id"`
	Turn      int    `json:"turn"`
	// Digest tells the message apart from others with the same ID; empty if only the records know it.
	Digest string `json:"digest,omitempty"`
}

func newTalkTurns() *talkTurns { return &talkTurns{} }

// find returns what is known of a message; nil if the message is not known.
func (t *talkTurns) find(messageID string) *KnownMessage {
	for i := range t.known {
		if t.known[i].MessageID == messageID {
			return &t.known[i]
		}
	}
	return nil
}

// add adds a stored message, unless its turn is known.
func (t *talkTurns) add(pending escalation.TalkPending, digest string) {
	known := slices.ContainsFunc(t.known, func(known KnownMessage) bool { return known.Turn == pending.Turn })
	t.remember(pending, digest)
	if known {
		return
	}
	at, _ := slices.BinarySearchFunc(t.waiting, pending.Turn,
		func(turn talkTurn, number int) int { return cmp.Compare(turn.Turn, number) })
	t.waiting = slices.Insert(t.waiting, at, talkTurn{TalkPending: pending})
}

// remember keeps the ID of a message with its turn.
func (t *talkTurns) remember(pending escalation.TalkPending, digest string) {
	t.latest = max(t.latest, pending.Turn)
	if known := t.find(pending.MessageID); known != nil {
		known.Turn, known.Digest = pending.Turn, cmp.Or(digest, known.Digest)
		return
	}
	t.known = append(t.known, KnownMessage{pending.MessageID, pending.Turn, digest})
	t.known = t.known[max(0, len(t.known)-maxKnownMessages):]
}

// hasNext reports whether a message waits for its turn.
func (t *talkTurns) hasNext() bool { return len(t.waiting) > 0 }

// begin returns the next turn, which runs from now on; nil if no message waits.
func (t *talkTurns) begin() *talkTurn {
	if len(t.waiting) == 0 {
		return nil
	}
	next := t.waiting[0]
	t.waiting, t.running = slices.Clone(t.waiting[1:]), &next
	return t.running
}

// end ends the running turn.
func (t *talkTurns) end(state escalation.TalkState, cost escalation.Cost) {
	turn := t.running
	t.running = nil
	t.ended = append(t.ended, ConversationTurn{Turn: turn.Turn, State: state, Head: turn.Head, Cost: cost})
	t.ended = t.ended[max(0, len(t.ended)-maxShownTurns):]
}

// open returns the turn with a number that has not ended; nil if there is none.
func (t *talkTurns) open(number int) *talkTurn {
	if t.running != nil && t.running.Turn == number {
		return t.running
	}
	for i := range t.waiting {
		if t.waiting[i].Turn == number {
			return &t.waiting[i]
		}
	}
	return nil
}

// states returns the latest turns, oldest first.
func (t *talkTurns) states() []ConversationTurn {
	states := slices.Clone(t.ended)
	if t.running != nil {
		states = append(states, ConversationTurn{
			Turn: t.running.Turn, State: escalation.TalkRunning, Head: t.running.Head, Waits: t.running.Waits,
		})
	}
	for _, turn := range t.waiting {
		states = append(states, ConversationTurn{Turn: turn.Turn, State: escalation.TalkWaiting, Head: turn.Head})
	}
	return states
}

// restore takes over the turns of the run before.
func (t *talkTurns) restore(carried CarriedConversation) {
	t.waiting, t.known, t.latest, t.ended = carried.Waiting, carried.Known, carried.Latest, carried.Ended
}
