package completions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/web/access"
)

// Headers of requests.
const (
	// chatHeader names the chat of Open WebUI, and messageHeader its message. Its user has one token with all others.
	chatHeader, messageHeader, userHeader = "X-OpenWebUI-Chat-Id", "X-OpenWebUI-Message-Id", "X-OpenWebUI-User-Id"
	// conversationHeader names a conversation in a client's own words.
	conversationHeader = "X-Conversation"
	// repeatHeader is the same in all repetitions of a request.
	repeatHeader = "Idempotency-Key"
)

const (
	// namePrefix begins the names of these conversations.
	namePrefix = access.ChatPrefix
	// keyLength is the length of a key, in hexadecimal digits. Nobody finds two messages with the same key.
	keyLength = 32
	// repeatWindow is the time after the end of a turn in which the same request, without an ID of its own, is a repetition. A client
	// that has lost its connection repeats a request within seconds; a person asks the same again later.
	repeatWindow = 2 * time.Minute
	// maxLooks limits the messages of a history that are looked for. Those before them came from elsewhere.
	maxLooks = 50
	// maxInstructions limits the client's instructions in a message, in characters.
	maxInstructions = 4_000
)

// sender is who sends a request, and what its headers say.
type sender struct {
	person, user, chat string
	// named reports that the client names its conversation itself. Then a message without a history follows the latest answer.
	named bool
	// repeat is the client's ID of the request; empty if it has none.
	repeat string
}

// senderOf returns the sender of r.
func senderOf(r *http.Request, person string) sender {
	header := r.Header.Get
	s := sender{person: person, user: header(userHeader), chat: header(chatHeader), repeat: header(messageHeader) + header(repeatHeader)}
	if own := header(conversationHeader); s.chat == "" && own != "" {
		s.chat, s.named = own, true
	}
	return s
}

// name returns the name of the conversation: that of the chat or, without one, of its first message. Two people never get the same.
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

// keysOf returns the keys of the messages of a dialogue, of which the last is the new one. The key of a message identifies it
// together with everything that was said before.
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

// canonical returns a text in the form in which two texts are compared: without lines of progress, and without differences of white
// space, which clients change.
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
	// known reports whether the message was sent before.
	known bool
}

// find returns the place of a new message. An earlier message of the history has a turn in the records, whose ID begins with the key
// of the message. The new message follows the latest of them that has an answer. What the records do not know becomes a part of the
// message.
func (s *Server) find(ctx context.Context, from sender, d dialogue) (place, error) {
	p := place{name: from.name(d), message: escalation.TalkMessage{Actor: from.person}}
	keys := keysOf(d)
	repeats, err := s.talks.TurnsOf(ctx, p.name, keys[len(keys)-1])
	if err != nil {
		return p, err
	}
	p.message.MessageID, p.known = s.messageID(keys[len(keys)-1], from.repeat, repeats)
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

// messageID returns the ID of a message with a key, and reports whether the message was sent before. The argument repeats lists
// the turns of the same message, oldest first.
func (s *Server) messageID(key, repeat string, repeats []escalation.TalkTurn) (id string, known bool) {
	if repeat != "" {
		id = key + "-" + hash(repeat)
		for i := range repeats {
			known = known || repeats[i].MessageID == id
		}
		return id, known
	}
	if last := len(repeats) - 1; last >= 0 && isRepeatable(repeats[last], s.clock()) {
		return repeats[last].MessageID, true
	}
	return fmt.Sprintf("%s-%d", key, len(repeats)), false
}

// isRepeatable reports whether the same message, sent again, is a repetition of the request for a turn.
func isRepeatable(turn escalation.TalkTurn, now time.Time) bool {
	return !turn.State.Final() || (turn.State == escalation.TalkAnswered && now.Sub(turn.EndedAt) < repeatWindow)
}

// follow returns the turn whose answer a new message follows; 0 if there is none. It also returns the messages after that answer.
func (s *Server) follow(ctx context.Context, name string, d dialogue, keys []string) (turn int, unknown []message, err error) {
	looks := 0
	for i := len(d.before) - 1; i >= 0 && looks < maxLooks; i-- {
		if d.before[i].Role != roleUser {
			continue
		}
		looks++
		found, err := s.talks.TurnsOf(ctx, name, keys[i])
		if err != nil {
			return 0, nil, err
		}
		if turn, unknown := answerIn(found, d.before[i+1:]); turn > 0 {
			return turn, unknown, nil
		}
	}
	return 0, d.before, nil
}

// answerIn returns that of the turns of one message whose answer the history has after the message, or else the latest answered
// one; 0 if none is answered. It also returns the rest of the history.
func answerIn(turns []escalation.TalkTurn, after []message) (turn int, rest []message) {
	for i := range turns {
		if turns[i].State != escalation.TalkAnswered {
			continue
		}
		turn = turns[i].Turn
		if len(after) > 0 && after[0].Role == roleAssistant && canonical(string(after[0].Text)) == canonical(render(turns[i])) {
			return turn, after[1:]
		}
	}
	return turn, after
}

// compose returns the text of the new message, with the client's instructions, and with what was said that the records do not know.
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
