package claudesim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// apiErrorCases cover a failing API.
func apiErrorCases() []contractCase {
	type apiCase struct {
		name   string
		reply  claudesim.Reply
		status int // 0 means none
		reason string
		calls  int
		quiet  bool // some releases repeat the call without an announcement
	}
	var cases []contractCase
	for _, c := range []apiCase{
		{name: "401", reply: claudesim.Fail(401, "bad key"), status: 401, calls: 2},
		{name: "429", reply: claudesim.Fail(429, "slow down"), status: 429, calls: 2},
		{name: "500", reply: claudesim.Fail(500, "oops"), status: 500, calls: 2},
		{name: "529", reply: claudesim.Fail(529, "busy"), status: 529, calls: 2},
		{name: "reset", reply: claudesim.Fail(claudesim.StatusRefused, ""), calls: 2},
		{name: "prompt too long", reply: claudesim.Fail(400, claudesim.PromptTooLong), status: 400, reason: "prompt_too_long", calls: 1},
		{name: "other 400", reply: claudesim.Fail(400, "no such thing"), status: 400, calls: 1, quiet: true},
	} {
		cases = append(cases, contractCase{
			name: "api error " + c.name, scenario: claudesim.Play(claudesim.Always(c.reply)), launches: []launch{fresh("hi")},
			want: func(t *testing.T, v claudesim.Version, o []observation) {
				r := last(t, o)
				require.Equal(t, 1, o[0].Exit)
				require.True(t, r.IsError)
				require.Equal(t, "success", r.Subtype)
				if c.status != 0 {
					require.Equal(t, c.status, *r.Status)
				}
				want := c.reason
				if want == "" {
					want = "api_error"
				}
				require.Equal(t, want, r.Reason)
				calls := c.calls
				if c.quiet && v == claudesim.VersionNew {
					calls += 5
				}
				require.Len(t, o[0].Asked, calls)
			},
		})
	}
	return append(cases, contractCase{
		name:     "api error, then an answer, then a resume after one",
		scenario: claudesim.Play(claudesim.On(claudesim.Match{Prompt: "more"}, claudesim.Fail(500, "oops")), claudesim.Always(claudesim.Say("hello").OnceFailing(429))),
		launches: []launch{
			fresh("hi"),
			{prompt: "more", args: []string{"--model", "haiku", "--resume", idA, "--tools", "Bash"}},
			{prompt: "hi again", args: []string{"--model", "haiku", "--resume", idA, "--tools", "Bash"}},
		},
		want: func(t *testing.T, _ claudesim.Version, o []observation) {
			require.Equal(t, []string{"system/init", "system/api_retry 429", "assistant/text", "result"}, o[0].Events)
			require.Equal(t, 1, o[1].Exit)
			require.Equal(t, 0, o[2].Exit)
			require.Equal(t, []string{"hi", "more", "hi again"}, o[2].Asked[0].Prompts)
		},
	})
}

// usageCases cover launches that the CLI refuses.
func usageCases() []contractCase {
	hello := claudesim.Play(claudesim.Always(claudesim.Say("hello")))
	refused := func(name string, l launch, stderr string) contractCase {
		return contractCase{
			name: name, scenario: hello, launches: []launch{l},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, 1, o[0].Exit)
				require.Equal(t, stderr, gist(o[0].Stderr))
				require.Empty(t, o[0].Transcripts)
			},
			forget: forgetWording,
		}
	}
	resumeMissing := "No conversation found with session ID: " + idMissing
	return []contractCase{
		refused("unknown option", fresh("hi", "--nonsense"), "error: unknown option '--nonsense'"),
		refused("no verbose", launch{raw: true, prompt: "hi", args: []string{"-p", "--output-format", "stream-json"}},
			"Error: When using --print, --output-format=stream-json requires --verbose"),
		refused("no prompt", fresh(""), "Error: Input must be provided either through stdin or as a prompt argument when using --print"),
		refused("malformed schema", fresh("hi", "--json-schema", "{nope"), "Error: --json-schema is not valid JSON"),
		refused("malformed session id", launch{prompt: "hi", args: []string{"--session-id", "nope"}}, "Error: Invalid session ID. Must be a valid UUID."),
		refused("resume of an unknown id", launch{prompt: "hi", args: []string{"--resume", idMissing}}, resumeMissing),
		refused("fork of an unknown id", launch{prompt: "hi", args: []string{"--resume", idMissing, "--fork-session", "--session-id", idB}}, resumeMissing),
		{
			name: "schema that is none", scenario: hello, launches: []launch{fresh("hi", "--json-schema", `{"type":"nope"}`)},
			want:   func(t *testing.T, _ claudesim.Version, o []observation) { require.Equal(t, 1, o[0].Exit) },
			forget: forgetWording,
		},
		{
			name: "blank prompt", scenario: hello, launches: []launch{fresh(" \n ")},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, 1, o[0].Exit)
				require.Empty(t, o[0].Results)
			},
		},
		{
			name: "session id with resume", scenario: hello, launches: []launch{fresh("hi"), {prompt: "hi", args: []string{"--resume", idA, "--session-id", idB}}},
			want: func(t *testing.T, _ claudesim.Version, o []observation) { require.Equal(t, 1, o[1].Exit) },
		},
		{
			name: "ids in use", scenario: hello, launches: []launch{
				fresh("hi"), fresh("hi"),
				{prompt: "hi", args: []string{"--model", "haiku", "--session-id", idB, "--tools", "Bash"}},
				{prompt: "hi", args: []string{"--model", "haiku", "--resume", idA, "--fork-session", "--session-id", idB, "--tools", "Bash"}},
			},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, "Error: Session ID "+idA+" is already in use.", o[1].Stderr)
				require.Equal(t, "Error: Session ID "+idB+" is already in use.", o[3].Stderr)
			},
		},
		{
			name: "flags that were new once", scenario: hello,
			launches: []launch{fresh("hi", "--restricted", "--system-prompt-snapshot", "off")},
			want:     func(t *testing.T, _ claudesim.Version, o []observation) { require.Equal(t, 0, o[0].Exit) },
		},
	}
}

// forgetWording reduces the error message of the first launch to its identifying part.
func forgetWording(o []observation) { o[0].Stderr = gist(o[0].Stderr) }

// limitCases cover runs that a limit ends early.
func limitCases() []contractCase {
	echoes := claudesim.Play(claudesim.Always(
		claudesim.Bash("echo 1"), claudesim.Bash("echo 2"), claudesim.Bash("echo 3"), claudesim.Say("done"),
	))
	budget := func(usd string) launch {
		return launch{prompt: "count", args: []string{
			"--model", "sonnet", "--session-id", idA, "--tools", "Bash", "--allowedTools", "Bash", "--max-budget-usd", usd,
			"--include-partial-messages",
		}}
	}
	return []contractCase{
		{
			name: "turns", scenario: echoes, launches: []launch{fresh("count", "--allowedTools", "Bash", "--max-turns", "2")},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, "error_max_turns", last(t, o).Subtype)
			},
		},
		{
			name: "budget", scenario: echoes, launches: []launch{budget("0.001")},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, "error_max_budget_usd", last(t, o).Subtype)
				require.Len(t, o[0].Asked, 2)
			},
		},
		{
			name: "budget of less than a call", scenario: echoes, launches: []launch{budget("0.0005")},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, "error_max_budget_usd", last(t, o).Subtype)
				require.Len(t, o[0].Asked, 1)
			},
		},
		{
			name: "structured output never given", scenario: claudesim.Play(claudesim.Always(claudesim.Say("no"))),
			launches: []launch{fresh("hi", "--json-schema", verdictSchema)},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, 0, o[0].Exit)
				require.Empty(t, last(t, o).Structured)
				require.Equal(t, "success", last(t, o).Subtype)
			},
		},
		{
			name: "structured output given when reminded", launches: []launch{fresh("hi", "--json-schema", verdictSchema)},
			scenario: claudesim.Play(claudesim.Always(claudesim.Say("no"), claudesim.Conclude(map[string]any{"status": "healthy"}))),
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.NotEmpty(t, last(t, o).Structured)
			},
		},
		{
			name: "structured output in a second run", scenario: claudesim.Play(
				claudesim.On(claudesim.Match{Prompt: "repeat as structured output"}, claudesim.Conclude(map[string]any{"status": "healthy"})),
				claudesim.Always(claudesim.Say("fine")),
			),
			launches: []launch{
				fresh("hi", "--json-schema", verdictSchema),
				{prompt: "repeat as structured output", args: []string{"--model", "haiku", "--resume", idA, "--tools", "Bash", "--json-schema", verdictSchema}},
			},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Empty(t, last(t, o[:1]).Structured)
				require.NotEmpty(t, last(t, o).Structured)
			},
		},
		{
			name: "structured output never right", scenario: claudesim.Play(claudesim.Always(claudesim.Conclude(map[string]any{"x": 1}))),
			launches: []launch{fresh("hi", "--json-schema", verdictSchema)},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, "error_max_structured_output_retries", last(t, o).Subtype)
			},
		},
	}
}
