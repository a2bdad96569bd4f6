package completions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Headers of requests.
const (
	// chatHeader names the chat of Open WebUI, and messageHeader its message. Its user has one token with all others.
	chatHeader, messageHeader, userHeader = "X-OpenWebUI-Chat-Id", "X-OpenWebUI-Message-Id", "X-OpenWebUI-User-Id"
	// conversationHeader names a conversation in a client's own words.
	conversationHeader = "X-Conversation"
	// repeatHeader is the same in all repetitions of a request.
	repeatHeader = "Idempotency-Key"
	// retryHeader counts the repetitions of a request by a package of OpenAI.
	retryHeader = "X-Stainless-Retry-Count"
)

const (
	// namePrefix begins the names of these conversations.
	namePrefix = access.ChatPrefix
	// keyLength is the length of a key, in hexadecimal digits. Nobody finds two messages with the same key.
	keyLength = 32
	// repeatWindow is the time after the end of a turn in which the same request, without an ID of its own, is a
	// repetition. A client that has lost its connection repeats a request within seconds; a person asks the same again
	// later.
	repeatWindow = 2 * time.Minute
	// maxLooks limits the messages of a history that are looked for. Those before them came from elsewhere.
	maxLooks = 50
	// maxRepeats limits the turns of one message among which that with the answer of a history is looked for.
	maxRepeats = 500
	// maxInstructions limits the client's instructions in a message, in characters.
	maxInstructions = 4_000
)

// sender is who sends a request, and what its headers say.
type sender struct {
	person, user, chat string
	// named reports that the client names its conversation itself. Then a message without a history follows the latest
	// answer.
	named bool
	// request is the client's ID of the request, and message that of Open WebUI's message; empty if the client gives
	// none.
	request, message string
	// retries reports that the client says itself that it repeats a request.
	retries bool
}

// senderOf returns the sender of r.
func senderOf(r *http.Request, person string) sender {
	header := r.Header.Get
	s := sender{
		person: person, user: header(userHeader), chat: header(chatHeader),
		request: header(repeatHeader), message: header(messageHeader),
	}
	retry := header(retryHeader)
	s.retries = retry != "" && retry != "0"
	if own := header(conversationHeader); s.chat == "" && own != "" {
		s.chat, s.named = own, true
	}
	return s
}

// owner identifies the person: users of one Open WebUI share its token.
func (s sender) owner() string { return hash(s.person, s.user) }

// name returns the name of the conversation: that of the chat or, without one, of its first message. Two people never
// get the same.
func (s sender) name(d dialogue) string {
	if s.chat != "" {
		return namePrefix + hash("chat", s.person, s.user, fmt.Sprint(s.named), s.chat)
	}
	return namePrefix + hash("message", s.person, s.user, firstKey(d))
}

// hash returns a fingerprint of texts.
func hash(texts ...string) string {
	sum := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(text), text) // it never fails
	}
	return hex.EncodeToString(sum.Sum(nil))[:keyLength]
}

// keysOf returns the keys of the messages of a dialogue, of which the last is the new one. The key of a message
// identifies it together with everything that was said before.
func keysOf(d dialogue) []string {
	key := ""
	var keys []string
	for _, m := range append(slices.Clip(d.before), message{roleUser, content(d.text)}) {
		key = hash(key, m.Role, canonical(string(m.Text)))
		keys = append(keys, key)
	}
	return keys
}

func firstKey(d dialogue) string { return keysOf(d)[0] }

// canonical returns a text in the form in which two texts are compared: without lines of progress, and without
// differences of white space, which clients change.
func canonical(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, progressMark) {
			kept = append(kept, line)
		}
	}
	return plaintext.Compact(strings.Join(kept, ""))
}

// place is where a new message belongs.
type place struct {
	name    string
	message escalation.TalkMessage
	// known reports whether the message was sent before, and ended is its turn if that has ended; 0 if it has not.
	known bool
	ended int
}

// again returns the place of a message that was sent before. It is sent as it was then: what it was composed of can
// have changed since.
func again(turn escalation.TalkTurn) place {
	p := place{
		name: strings.TrimPrefix(turn.ConversationID, escalation.ConversationPrefix), message: turn.TalkMessage,
		known: true,
	}
	if turn.State.Final() {
		p.ended = turn.Turn
	}
	return p
}

// find returns the place of a new message. A message that was sent before has a turn already. The new message follows
// the latest answer of its history that the records know. What they do not know becomes a part of the message.
func (s *Server) find(ctx context.Context, from sender, d dialogue) (place, error) {
	p := place{name: from.name(d), message: escalation.TalkMessage{Actor: from.person}}
	keys := keysOf(d)
	p.message.Key = keys[len(keys)-1]
	id, before, err := s.identify(ctx, from, d, p)
	if err != nil || before != nil {
		if before != nil {
			p = again(*before)
		}
		return p, err
	}
	p.message.MessageID = id
	if from.named && len(d.before) == 0 {
		p.message.Text, err = d.compose(nil)
		return p, err
	}
	after, unknown, err := s.follow(ctx, p.name, d, keys)
	if err != nil {
		return p, err
	}
	p.message.After = &after
	if after > 0 {
		d.instructions = "" // the conversation has them
	}
	p.message.Text, err = d.compose(unknown)
	return p, err
}

// identify returns the ID of a message or, if the message was sent before, its turn. The ID is the client's or ours.
// Ours is the same for the same message after the same turns, whenever it is sent, so that a message that was not
// stored in time is stored once. It is no other message's, because turns have growing numbers: they are removed after
// weeks without a message, when the conversation has ended, too.
func (s *Server) identify(
	ctx context.Context, from sender, d dialogue, p place,
) (id string, before *escalation.TalkTurn, err error) {
	key := p.message.Key
	switch {
	case from.request != "":
		id = "request-" + hash(from.person, from.user, from.request)
	case from.message != "":
		id = "message-" + hash(from.person, from.user, key, from.message)
	default:
		var latest escalation.TalkTurn
		err = s.talks.TurnsOf(ctx, p.name, key, func(turn escalation.TalkTurn) bool {
			latest = turn
			return false
		})
		repeated := false
		if err == nil && latest.Turn > 0 {
			repeated, err = s.isRepeated(ctx, from, d, p.name, latest)
		}
		if err != nil || repeated {
			return "", &latest, err
		}
		newest, err := s.talks.History(ctx, p.name, 1)
		return "own-" + hash(p.name, key, latest.MessageID, fmt.Sprint(numberOf(newest))), nil, err
	}
	found, err := s.talks.MessageTurn(ctx, id)
	switch {
	case operations.KindOf(err) == operations.KindNotFound:
		return id, nil, nil
	case err == nil && found.Key != key:
		err = operations.WithKind(operations.KindConflict, fmt.Errorf("%w: its %s was used before, for another message",
			operations.ErrOtherMessage, repeatHeader))
	}
	return id, &found, err
}

// numberOf returns the number of the last of some turns; 0 if there is none.
func numberOf(turns []escalation.TalkTurn) int {
	if len(turns) == 0 {
		return 0
	}
	return turns[len(turns)-1].Turn
}

// isRepeated reports whether a message, sent again without an ID, repeats the request for a turn. If the history before
// it leaves open what it follows, it repeats only a request whose answer has not arrived: a second "yes" is another
// one. After a turn without an answer, it is a repetition if it would fail again: it would cost as much again.
func (s *Server) isRepeated(
	ctx context.Context, from sender, d dialogue, name string, turn escalation.TalkTurn,
) (bool, error) {
	switch {
	case !turn.State.Final():
		return true, nil
	case s.clock().Sub(turn.EndedAt) >= repeatWindow:
		return false, nil
	case turn.State != escalation.TalkAnswered:
		return s.talks.FailsAgain(ctx, turn)
	}
	return from.retries || !from.named || len(d.before) > 0 || !s.told.has(name, turn.Turn), nil
}

// told remembers the turns whose answers have reached their client.
type told struct {
	mutex sync.Mutex
	turns map[string]time.Time // by conversation and turn
}

func (t *told) add(name string, turn int, now time.Time) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	maps.DeleteFunc(t.turns, func(_ string, at time.Time) bool { return now.Sub(at) > 2*repeatWindow })
	t.turns[fmt.Sprint(name, " ", turn)] = now
}

func (t *told) has(name string, turn int) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	_, known := t.turns[fmt.Sprint(name, " ", turn)]
	return known
}

// follow returns the turn whose answer a new message follows; 0 if there is none. It also returns the messages after
// that answer.
func (s *Server) follow(
	ctx context.Context, name string, d dialogue, keys []string,
) (turn int, unknown []message, err error) {
	looks := 0
	for i := len(d.before) - 1; i >= 0 && looks < maxLooks; i-- {
		if d.before[i].Role != roleUser {
			continue
		}
		looks++
		turn, unknown, err := s.answerOf(ctx, name, keys[i], d.before[i+1:])
		if err != nil || turn > 0 {
			return turn, unknown, err
		}
	}
	return 0, d.before, nil
}

// answerOf returns that of the turns of one message whose answer the history has after the message, or else the latest
// answered one; 0 if none is answered. It also returns the rest of the history.
func (s *Server) answerOf(
	ctx context.Context, name, key string, after []message,
) (turn int, rest []message, err error) {
	said, begun := "", "" // begun is an answer with which the history's begins
	if len(after) > 0 && after[0].Role == roleAssistant {
		said = canonical(string(after[0].Text))
	}
	rest, seen := after, 0
	err = s.talks.TurnsOf(ctx, name, key, func(one escalation.TalkTurn) bool {
		seen++
		if one.State != escalation.TalkAnswered {
			return seen < maxRepeats
		}
		if turn == 0 {
			turn = one.Turn
		}
		if said == "" {
			return false
		}
		shown := render(one)
		if said == canonical(shown) {
			turn, rest = one.Turn, after[1:]
			return false
		}
		if begun == "" && strings.HasPrefix(said, canonical(shown)) {
			turn, begun = one.Turn, shown
		}
		return seen < maxRepeats
	})
	for range maxLooks {
		if err != nil || begun == "" || len(rest) < len(after) {
			break
		}
		var more int
		more, begun, err = s.continuation(ctx, name, key, begun, said)
		if turn = max(turn, more); more > 0 && said == canonical(begun) {
			rest = after[1:]
		}
	}
	return turn, rest, err
}

// continuation returns the turn that has continued the answer shown, and both answers as the client shows them; 0 and
// "" if there is none with which a message of the history begins.
func (s *Server) continuation(ctx context.Context, name, key, shown, said string) (turn int, both string, err error) {
	seen, asked := 0, hash(hash(key, roleAssistant, canonical(shown)), roleUser, canonical(continueText))
	err = s.talks.TurnsOf(ctx, name, asked, func(one escalation.TalkTurn) bool {
		seen++
		if text := shown + continued + render(one); one.State == escalation.TalkAnswered &&
			strings.HasPrefix(said, canonical(text)) {
			turn, both = one.Turn, text
		}
		return turn == 0 && seen < maxRepeats
	})
	return turn, both, err
}

// compose returns the text of the new message, with the client's instructions, and with what was said that the records
// do not know.
func (d dialogue) compose(unknown []message) (string, error) {
	room := escalation.MaxTalkText - utf8.RuneCountInString(d.text)
	if room < 0 {
		return "", &requestError{"messages", fmt.Sprintf("the message has %d characters, and at most %d are allowed",
			escalation.MaxTalkText-room, escalation.MaxTalkText)}
	}
	const said, now, told = "Said before:\n", "\nThe message:\n", "\n\n"
	head := ""
	if d.instructions != "" {
		head = plaintext.Cut(d.instructions, maxInstructions) + told
	}
	history := ""
	for _, m := range slices.Backward(unknown) {
		line := m.Role + ": " + string(m.Text) + "\n"
		if utf8.RuneCountInString(head+said+line+history+now) > room {
			break
		}
		history = line + history
	}
	if history != "" {
		head += said + history + now
	}
	if utf8.RuneCountInString(head) > room {
		head = ""
	}
	return head + d.text, nil
}
