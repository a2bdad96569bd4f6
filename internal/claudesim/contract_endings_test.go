package claudesim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// withToken runs the CLI with the token of a subscription instead of a key.
func withToken(place) map[string]string {
	return map[string]string{"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted"}
}

// withTokenFirst is the launch of a new conversation with the token of a subscription.
func withTokenFirst(prompt string) launch {
	first := fresh(prompt)
	first.env = withToken
	return first
}

// withOtherKey runs the CLI with the key of another account.
func withOtherKey(place) map[string]string {
	return map[string]string{"ANTHROPIC_API_KEY": "another-key"}
}

// endingCases cover the ways in which a model, its provider or an account says no. The driver classifies them by the
// fields that are checked here.
func endingCases() []contractCase {
	until := time.Date(2030, 1, 28, 5, 46, 40, 0, time.UTC)
	// The CLI's sentences and the conversation after them are for people and for the model. The driver does not depend
	// on them.
	forget := func(o []observation) {
		for i := range o {
			for j := range o[i].Results {
				o[i].Results[j].Text = ""
			}
			o[i].Transcripts = nil
		}
	}
	ends := func(name string, reply claudesim.Reply, env func(place) map[string]string, want func(*testing.T, claudesim.Version, observation)) contractCase {
		first := fresh("hi")
		first.env = env
		return contractCase{
			name: name, scenario: claudesim.Play(claudesim.Always(reply)), launches: []launch{first}, forget: forget,
			want: func(t *testing.T, v claudesim.Version, o []observation) {
				r := last(t, o)
				require.Equal(t, 1, o[0].Exit)
				require.True(t, r.IsError)
				require.Equal(t, "success", r.Subtype)
				want(t, v, o[0])
			},
		}
	}
	refusedParent := claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "go on"}, claudesim.Fail(400, "messages.1.content.0: Invalid `signature` in `thinking` block")),
		claudesim.Always(claudesim.Say("looking")),
	)
	return []contractCase{
		ends("the model refuses", claudesim.Refuse("I"), nil, func(t *testing.T, _ claudesim.Version, o observation) {
			require.Equal(t, "refusal", o.Results[0].StopReason)
			require.Nil(t, o.Results[0].Status)
			require.Equal(t, []string{"invalid_request"}, o.Classes)
			require.Contains(t, o.Events, "system/model_refusal_no_fallback")
			require.Len(t, o.Asked, 2)
		}),
		ends("answers that are too long", claudesim.CutShort("a long answer"), nil, func(t *testing.T, _ claudesim.Version, o observation) {
			require.Nil(t, o.Results[0].Status)
			require.Equal(t, []string{"max_output_tokens"}, o.Classes)
			require.Len(t, o.Asked, 4)
		}),
		ends("a subscription's limit", claudesim.Limited(until), withToken, func(t *testing.T, _ claudesim.Version, o observation) {
			require.Equal(t, 429, *o.Results[0].Status)
			require.Equal(t, []string{"rate_limit"}, o.Classes)
			require.Equal(t, []limitView{{"rejected", until.Unix(), "five_hour", false}}, o.Limits)
			require.Len(t, o.Asked, 1)
		}),
		ends("a subscription's limit of a model", claudesim.LimitedBy("seven_day_opus", until), withToken,
			func(t *testing.T, _ claudesim.Version, o observation) {
				require.Equal(t, []limitView{{"rejected", until.Unix(), "seven_day_opus", false}}, o.Limits)
				require.Len(t, o.Asked, 1)
			}),
		ends("the limit of a key", claudesim.Limited(until), nil, func(t *testing.T, _ claudesim.Version, o observation) {
			require.Equal(t, 429, *o.Results[0].Status)
			require.Empty(t, o.Limits, "only the worker's proxy knows")
			require.Len(t, o.Asked, 1)
		}),
		ends("not logged in", claudesim.Fail(claudesim.StatusNoLogin, ""), func(place) map[string]string { return map[string]string{"ANTHROPIC_API_KEY": ""} },
			func(t *testing.T, _ claudesim.Version, o observation) {
				require.Nil(t, o.Results[0].Status)
				require.Equal(t, []string{"authentication_failed"}, o.Classes)
				require.Empty(t, o.Asked)
			}),
		ends("no money", claudesim.Fail(400, "Your credit balance is too low to access the Anthropic API."), nil,
			func(t *testing.T, _ claudesim.Version, o observation) {
				require.Equal(t, 400, *o.Results[0].Status)
				require.Equal(t, []string{"billing_error"}, o.Classes)
			}),
		ends("no such model or address", claudesim.Fail(404, "not found"), nil, func(t *testing.T, _ claudesim.Version, o observation) {
			require.Equal(t, 404, *o.Results[0].Status)
			require.Equal(t, []string{"model_not_found"}, o.Classes)
		}),
		{
			name: "an account pays beyond its limit, and the API is overloaded", forget: forget,
			scenario: claudesim.Play(claudesim.Always(claudesim.Bash("true").OnCredits(until), claudesim.Fail(529, "busy"))),
			launches: []launch{withTokenFirst("hi")},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, 529, *last(t, o).Status)
				require.Equal(t, []limitView{{"rejected", until.Unix(), "five_hour", true}}, o[0].Limits)
			},
		},
		{
			name: "a resumed conversation is refused", scenario: refusedParent, forget: forget, launches: []launch{
				fresh("hi"),
				{prompt: "go on", args: []string{"--model", "sonnet", "--resume", idA, "--fork-session", "--session-id", idB, "--tools", "Bash"}},
				{prompt: "begin anew", args: []string{"--model", "sonnet", "--session-id", idC, "--tools", "Bash"}},
			},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, 400, *o[1].Results[0].Status)
				require.Equal(t, []string{"unknown"}, o[1].Classes)
				require.NotContains(t, o[1].Events, "assistant/tool_use Bash")
				require.False(t, o[2].Results[0].IsError)
			},
		},
		{
			name: "a shorter answer after one that is too long", forget: forget,
			scenario: claudesim.Play(claudesim.On(claudesim.Match{Prompt: "shorter"}, claudesim.Say("short")), claudesim.Always(claudesim.CutShort("long"))),
			launches: []launch{fresh("hi"), {prompt: "shorter", args: []string{"--model", "haiku", "--resume", idA, "--tools", "Bash"}}},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, 0, o[1].Exit)
				require.Equal(t, []string{"hi", "shorter"}, o[1].Asked[0].Prompts)
			},
		},
	}
}

// thinkingCases cover the thinking of a parent: a provider accepts it only from the model, and perhaps only from the
// account, that has written it. The CLI leaves out that of another model. It does not notice another account: the
// provider's refusal then begins a new conversation.
func thinkingCases() []contractCase {
	thinks := claudesim.Play(claudesim.Always(claudesim.Say("looking").ThinkingFirst("hm")))
	var cases []contractCase
	models := []string{"haiku", "sonnet", "opus"}
	for _, parent := range models {
		first := fresh("hi")
		first.args = append([]string{"--model", parent}, first.args[2:]...)
		var launches []launch
		launches = append(launches, first)
		for i, child := range append(models, parent, parent) {
			next := launch{prompt: "go on", args: []string{
				"--model", child, "--resume", idA, "--fork-session", "--session-id", idMissing[:len(idMissing)-1] + string(rune('5'+i)), "--tools", "Bash",
			}}
			switch i {
			case 3:
				next.env = withOtherKey
			case 4:
				next.env = withToken
			}
			launches = append(launches, next)
		}
		cases = append(cases, contractCase{
			name: "thinking of " + parent, scenario: thinks, launches: launches,
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				for i, child := range append(models, parent, parent) {
					want := 0
					if child == parent {
						want = 1
					}
					require.Equal(t, want, o[i+1].Asked[0].Thinking, "%s after %s, launch %d", child, parent, i+1)
				}
			},
			forget: func(o []observation) {
				for i := range o {
					o[i].Transcripts = nil
				}
			},
		})
	}
	return cases
}
