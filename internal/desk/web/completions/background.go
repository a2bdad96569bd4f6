package completions

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Clients make requests by themselves, for example for the title of a chat. Each would be a paid session. Their wording
// differs, so they are recognized by what they ask for and by what they quote. A person can be taken for a client, so
// each such answer says that there was no session, and how to get one.

const (
	// noAnswerTokens are too few for any answer. fewTokens are too few for an answer to a first message. shortTokens
	// are what clients grant to a title, of which no part is shown before its end.
	noAnswerTokens, fewTokens, shortTokens = 64, 200, 1_000
	// recentWindow is the time after an answer in which a client asks for a title of the chat, and maxRecent is the
	// number of answers among which its chat is looked for.
	recentWindow, maxRecent = 10 * time.Minute, 200
	// taskWindow is the time after an answer in which a client asks for something by itself at the end of the chat.
	taskWindow = 30 * time.Second
	// maxQuoted is the number of characters by which an answer is recognized, and minQuoted those that are needed.
	maxQuoted, minQuoted = 60, 12
	// maxRecentText limits a message that is remembered, in characters.
	maxRecentText = 2_000
)

// noConversation returns the answer to a request that no person waits for. It returns false for every other request,
// and for all in which the client names a conversation.
func (s *Server) noConversation(asked request, from sender, d dialogue) (string, bool) {
	if from.named || d.continues {
		return "", false
	}
	first := len(d.before) == 0
	quoted, quotes := s.recent.quoted(from.owner(), canonical(d.instructions+"\n"+d.text), s.clock())
	limit := int(max(asked.MaxTokens, asked.MaxCompletionTokens))
	few := limit > 0 && (limit <= noAnswerTokens || first && (limit <= fewTokens || limit <= shortTokens &&
		!asked.Stream))
	var why string
	switch {
	case few:
		why = fmt.Sprintf("it asks for %d tokens at most, which is less than an answer has", limit)
	case first && quotes:
		why = "it quotes an answer of another chat"
	case d.instructed:
		why = "it ends with an instruction of the client, and no message of yours"
	case !first && !asked.Stream && s.recent.streamed(from.owner(), d.before, s.clock()):
		why = "it waits for its whole answer, and the chat before it was shown while it was written"
	default:
		return "", false
	}
	if !quotes && !first {
		quoted.text, quotes = canonical(string(d.before[0].Text)), true
	}
	answer := fmt.Sprintf("(No session was started: this looks like a request that your client makes by itself, "+
		"because %s. "+
		"To have it answered, name a conversation in the header %s.)", why, conversationHeader)
	if quotes {
		answer = plaintext.Cut(quoted.text, maxTitle) + "\n\n" + answer
	}
	return answer, true
}

// exchange is a message and its answer, in the form in which texts are compared.
type exchange struct {
	owner string
	// text is the beginning of the message, and head that of the answer.
	text, head string
	at         time.Time
	// streams reports that the client has shown the answer while it was written.
	streams bool
}

// head returns the beginning of an answer by which it is recognized.
func head(answer string) string { return plaintextHead(canonical(answer), maxQuoted) }

// plaintextHead returns the first characters of a text.
func plaintextHead(text string, limit int) string {
	for at := range text {
		if limit == 0 {
			return text[:at]
		}
		limit--
	}
	return text
}

// recent holds the latest answers of this server.
type recent struct {
	mutex     sync.Mutex
	exchanges []exchange
}

func (r *recent) add(one exchange) {
	one.text = plaintextHead(one.text, maxRecentText)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.exchanges) >= maxRecent {
		r.exchanges = append(r.exchanges[:0], r.exchanges[len(r.exchanges)-maxRecent+1:]...)
	}
	r.exchanges = append(r.exchanges, one)
}

// quoted returns the latest exchange of an owner of which a text has both the message and the beginning of the answer.
func (r *recent) quoted(owner, text string, now time.Time) (exchange, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, one := range slices.Backward(r.exchanges) {
		if one.owner != owner || now.Sub(one.at) > recentWindow || len(one.head) < minQuoted {
			continue
		}
		if _, after, found := strings.Cut(text, one.text); found && strings.Contains(after, one.head) {
			return one, true
		}
	}
	return exchange{}, false
}

// streamed reports whether the last answer of a history is one that its client has just shown while it was written.
func (r *recent) streamed(owner string, history []message, now time.Time) bool {
	said := ""
	for _, m := range history {
		if m.Role == roleAssistant {
			said = canonical(string(m.Text))
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, one := range slices.Backward(r.exchanges) {
		if one.owner == owner && now.Sub(one.at) <= taskWindow && one.head != "" && strings.HasPrefix(said, one.head) {
			return one.streams
		}
	}
	return false
}
