package claudesim_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// conversationCases cover conversations: new, continued, forked and damaged ones.
func conversationCases() []contractCase {
	climb := claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku", Prompt: "look"},
			claudesim.Bash("echo seen").Saying("Looking."),
			claudesim.Conclude(map[string]any{"status": "escalate"}).Using(claudesim.Usage{Input: 7, Output: 11, CacheRead: 13, CacheCreation: 17}),
		),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "repair", Tools: []string{"Bash"}},
			claudesim.Bash("echo repaired; exit 3"),
			claudesim.Conclude(map[string]any{"wrong": 1}),
			claudesim.Conclude(map[string]any{"status": "resolved"}),
		),
		claudesim.On(claudesim.Match{Prompt: "what did you do"}, claudesim.Say("Repaired it.")),
	)
	schema := []string{"--json-schema", verdictSchema, "--allowedTools", "Bash(echo:*)", "Bash(exit:*)"}
	fork := launch{prompt: "repair it", args: append([]string{
		"--model", "sonnet", "--resume", idA, "--fork-session", "--session-id", idB, "--tools", "Bash",
		"--append-system-prompt", "You repair.",
	}, schema...)}
	resume := launch{prompt: "what did you do?", args: []string{"--model", "sonnet", "--resume", idB, "--tools", "Bash"}}
	hello := claudesim.Play(claudesim.Always(claudesim.Say("hello")))
	return []contractCase{
		{
			name: "climb by forks", scenario: climb, launches: []launch{fresh("look", schema...), fork, resume},
			want: func(t *testing.T, v claudesim.Version, o []observation) {
				require.JSONEq(t, `{"status":"escalate"}`, o[0].Results[0].Structured)
				require.Equal(t, map[string]string{idA: "created"}, o[0].Transcripts)
				require.Equal(t, map[string]string{idA: "unchanged", idB: "created"}, o[1].Transcripts)
				require.Equal(t, []string{"error=false seen"}, o[0].Tools[:1])
				require.Equal(t, []string{"look", "repair it"}, o[1].Asked[0].Prompts)
				require.Equal(t, []string{idB}, o[1].SessionIDs)
				require.Equal(t, []string{"look", "repair it", "what did you do?"}, o[2].Asked[0].Prompts)
				require.Greater(t, o[2].Results[0].TotalCost, o[1].Results[0].TotalCost, "the total is carried on")
				if v == claudesim.VersionNew {
					own := o[0].Results[0].OwnCost + o[1].Results[0].OwnCost + o[2].Results[0].OwnCost
					require.InDelta(t, own, o[2].Results[0].TotalCost, 1e-9)
				}
			},
		},
		{
			name: "partial messages", scenario: climb,
			launches: []launch{fresh("look", append([]string{"--include-partial-messages"}, schema...)...)},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Len(t, o[0].Streamed, 2)
				require.Equal(t, 11, o[0].Streamed[1].Output)
				require.Equal(t, 1, o[0].Context.Output, "the message's own figure is a placeholder")
			},
		},
		{
			name: "resume in place", scenario: hello, launches: []launch{
				fresh("hi"), {prompt: "hi again", args: []string{"--model", "haiku", "--resume", idA, "--tools", "Bash"}},
			},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, map[string]string{idA: "appended"}, o[1].Transcripts)
				require.Equal(t, []string{"hi", "hi again"}, o[1].Asked[0].Prompts)
			},
		},
		{
			name: "resume elsewhere", scenario: hello, launches: []launch{
				fresh("hi"), {prompt: "hi again", elsewhere: true, args: []string{"--model", "haiku", "--resume", idA, "--tools", "Bash"}},
			},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.False(t, last(t, o).IsError)
			},
		},
		{
			name: "models", scenario: hello, launches: []launch{
				{prompt: "hi", args: []string{"--model", "opus", "--tools", ""}},
				{prompt: "hi", args: []string{"--model", "claude-sonnet-5-5", "--tools", "Read"}},
			},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.NotZero(t, last(t, o).TotalCost)
				for i := range o {
					require.Len(t, o[i].SessionIDs, 1)
				}
			},
			forget: func(o []observation) { // the CLI chooses the ids
				for i := range o {
					o[i].SessionIDs, o[i].Transcripts = nil, nil
					for j := range o[i].Results {
						o[i].Results[j].SessionID = ""
					}
				}
			},
		},
		{
			name: "transcript with garbage", scenario: hello, launches: []launch{
				fresh("hi"),
				{
					prompt: "hi again", args: []string{"--model", "haiku", "--resume", idA, "--tools", "Bash"},
					before: func(t *testing.T, p place) { appendTo(t, p.transcript(idA), "garbage\n{\"type\":\"user\",\"mess") },
				},
			},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, 0, o[1].Exit)
				require.Equal(t, "hi", o[1].Asked[0].Prompts[0])
			},
		},
		{
			name: "empty transcript", scenario: hello, launches: []launch{
				fresh("hi"),
				{
					prompt: "hi again", args: []string{"--model", "haiku", "--resume", idA, "--tools", "Bash"},
					before: func(t *testing.T, p place) { require.NoError(t, os.Truncate(p.transcript(idA), 0)) },
				},
				fresh("once more"),
			},
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Equal(t, "No conversation found with session ID: "+idA, o[1].Stderr)
				require.Equal(t, "Error: Session ID "+idA+" is already in use.", o[2].Stderr)
			},
		},
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}
