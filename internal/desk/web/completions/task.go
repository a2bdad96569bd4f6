package completions

import (
	"encoding/json"
	"strings"

	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// taskHead begins the requests that Open WebUI makes by itself, and taskHistory encloses what was said in the chat.
	taskHead, taskHistory = "### Task:", "<chat_history>"
	// maxTitle limits the title of a chat, in characters.
	maxTitle = 60
)

// taskAnswer returns the answer to a request that Open WebUI makes by itself, for example for the title of a chat. Such
// a request needs no session. It returns false for every other request. It knows Open WebUI's own prompts; an
// administrator can replace them.
func taskAnswer(d dialogue) (string, bool) {
	task, history, _ := strings.Cut(d.text, taskHistory)
	if len(d.before) > 0 || !strings.HasPrefix(task, taskHead) || !strings.Contains(task, "Output") {
		return "", false
	}
	var answer any
	switch asks := func(field string) bool { return strings.Contains(task, `"`+field+`":`) }; {
	case asks("title"):
		answer = map[string]string{"title": titleOf(history)}
	case asks("tags"):
		answer = map[string][]string{"tags": {"General"}} // the tag for chats that are too short for one
	case asks("follow_ups"):
		answer = map[string][]string{"follow_ups": {}}
	case asks("queries"):
		answer = map[string][]string{"queries": {}}
	case asks("text"):
		answer = map[string]string{"text": ""} // continues what a person is writing
	default:
		return "", false
	}
	text, err := json.Marshal(answer)
	return string(text), err == nil
}

// titleOf returns the beginning of the first message of a chat.
func titleOf(history string) string {
	_, said, _ := strings.Cut(history, "USER:")
	said, _, _ = strings.Cut(said, "ASSISTANT:")
	said, _, _ = strings.Cut(said, "</chat_history>")
	if said = plaintext.Compact(said); said == "" {
		said = "Conversation"
	}
	return plaintext.Cut(said, maxTitle)
}
