package claudesim_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// post sends a body to the messages endpoint of an API.
func post(t *testing.T, url string, body map[string]any) (status int, answer string) {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages?beta=true", bytes.NewReader(data))
	require.NoError(t, err)
	request.Header.Set("X-Api-Key", "secret")
	request.Header.Set("X-App", "cli")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func says(role, text string) map[string]any { return map[string]any{"role": role, "content": text} }

// ask returns a request to haiku with the tool Bash.
func ask(messages ...map[string]any) map[string]any {
	return map[string]any{
		"model": "claude-haiku", "system": "Be brief.", "max_tokens": 1000,
		"tools": []map[string]any{{"name": "Bash"}}, "messages": messages,
	}
}

func TestAPIAnswersByTheRequestAlone(t *testing.T) {
	t.Parallel()
	api := simtest.StartAPI(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "count", Model: "haiku", System: "brief", Tools: []string{"Bash"}, NoTools: []string{"Write"}},
			claudesim.Say("one"), claudesim.Say("two")),
	))
	reminder := says("user", "<system-reminder>count me not</system-reminder>")
	for range 2 { // a repeated request gets the same answer
		_, answer := post(t, api.URL(), ask(says("user", "please count")))
		require.Contains(t, answer, `"text":"one"`)
	}
	_, answer := post(t, api.URL(), ask(says("user", "please count"), says("assistant", "one"), says("system", "tokens left"), reminder))
	require.Contains(t, answer, `"text":"two"`)
	_, answer = post(t, api.URL(), ask(says("user", "please count"), says("assistant", "one"), says("assistant", "two"), reminder))
	require.Contains(t, answer, `"text":"two"`, "the last reply is repeated")
	_, answer = post(t, api.URL(), ask(says("user", "count"), says("assistant", "one"), says("user", "count again")))
	require.Contains(t, answer, `"text":"one"`, "a new prompt begins anew")
}

func TestAPIExplainsWhatIsNotScripted(t *testing.T) {
	t.Parallel()
	api := simtest.StartAPI(t, claudesim.Play(claudesim.On(claudesim.Match{Prompt: "work"}, claudesim.Bash("true")).Named("worker")))
	status, answer := post(t, api.URL(), ask(says("user", "play")))
	require.Equal(t, 400, status)
	require.Contains(t, answer, `no turn matches model \"claude-haiku\"`)
	status, answer = post(t, api.URL(), ask(says("user", "work"), says("assistant", "called")))
	require.Equal(t, 400, status)
	require.Contains(t, answer, "turn 1 (worker) has 1 replies and this is model call 2")
}

func TestAPIFailsAsOftenAsTold(t *testing.T) {
	t.Parallel()
	api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(claudesim.Say("hi").OnceFailing(529))))
	var statuses []int
	for range 2 {
		status, _ := post(t, api.URL(), ask(says("user", "hi")))
		statuses = append(statuses, status)
	}
	require.Equal(t, []int{529, 200}, statuses)
}

func TestAPIKeepsAuxiliaryRequestsApart(t *testing.T) {
	t.Parallel()
	api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(claudesim.Say("hi"))))
	title := map[string]any{"model": "claude-haiku", "max_tokens": 100, "messages": []map[string]any{says("user", "<session>\nhi\n</session>")}}
	probe := map[string]any{"model": "claude-haiku", "max_tokens": 1, "messages": []map[string]any{says("user", "quota")}}
	for _, body := range []map[string]any{title, probe, ask(says("user", "hi"))} {
		status, _ := post(t, api.URL(), body)
		require.Equal(t, 200, status)
	}
	require.Len(t, api.Requests(), 1)
	require.Len(t, api.AllRequests(), 3)
}

func TestAPIRecordsWhatItWasAsked(t *testing.T) {
	t.Parallel()
	api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(claudesim.Say("hi"))))
	_, _ = post(t, api.URL(), ask(
		says("user", "run it"),
		map[string]any{"role": "assistant", "content": []map[string]any{{"type": "tool_use", "id": "t1", "name": "Bash", "input": map[string]any{"command": "id"}}}},
		map[string]any{"role": "user", "content": []map[string]any{
			{"type": "tool_result", "tool_use_id": "t1", "content": []map[string]any{{"type": "text", "text": "uid=0"}}},
		}},
	))
	r := api.Requests()[0]
	require.Equal(t, "claude-haiku", r.Model)
	require.Equal(t, "Be brief.", r.System)
	require.Equal(t, []string{"Bash"}, r.Tools)
	require.Equal(t, []string{"uid=0"}, r.ToolResults())
	require.Equal(t, "run it", r.Prompt())
	require.Equal(t, 1, r.Step())
	require.Contains(t, r.Text(), `{"command":"id"}`)
	require.Equal(t, "cli", r.Header.Get("X-App"))
	require.Empty(t, r.Header.Get("X-Api-Key"), "credentials are not kept")
}

func TestAPIStreams(t *testing.T) {
	t.Parallel()
	api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(claudesim.Bash("id").Saying("look"))))
	body := ask(says("user", "hi"))
	body["stream"] = true
	_, answer := post(t, api.URL(), body)
	var kinds []string
	for line := range strings.Lines(answer) {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	}
	require.Equal(t, []string{
		"message_start",
		"content_block_start", "content_block_delta", "content_block_stop",
		"content_block_start", "content_block_delta", "content_block_stop",
		"message_delta", "message_stop",
	}, kinds)
}
