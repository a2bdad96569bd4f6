package claudesim_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// toolCases cover tool calls and their permissions.
func toolCases() []contractCase {
	write := map[string]any{"file_path": "out.txt", "content": "x"}
	writes := func(path string) claudesim.Reply {
		return claudesim.Call("Write", map[string]any{"file_path": path, "content": "x"})
	}
	return []contractCase{
		{
			name: "denied by the rules", launches: []launch{fresh("try", "--allowedTools", "Bash(echo:*)", "--disallowedTools", "Bash(echo bad:*)")},
			scenario: claudesim.Play(claudesim.Always(
				claudesim.Bash("echo a && touch made"), claudesim.Bash("echo $(id)"), claudesim.Bash("echo a > made"),
				claudesim.Bash("X=1 echo a"), claudesim.Bash("/bin/echo a"), claudesim.Bash(`sh -c "echo 1"`),
				claudesim.Bash("echo bad a"), claudesim.Bash("cat /etc/hostname"), claudesim.Say("no luck"),
			)),
			want: func(t *testing.T, _ claudesim.Version, o []observation) { require.Len(t, last(t, o).Denials, 8) },
		},
		{
			name: "granted by the rules", launches: []launch{fresh("try", "--allowedTools", "Bash(echo:*)", "Bash(printf *)")},
			scenario: claudesim.Play(claudesim.Always(
				claudesim.Bash("echo a && echo b; echo c | cat"), claudesim.Bash("printf 'x;y'"), claudesim.Bash("echo a 2>&1"),
				claudesim.Bash("echo quiet >/dev/null"), claudesim.Bash("timeout 5 echo a"), claudesim.Say("good"),
			)),
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Empty(t, last(t, o).Denials)
				require.Equal(t, "error=false a\nb\nc", o[0].Tools[0])
			},
		},
		{
			name: "two calls at once", launches: []launch{fresh("try", "--allowedTools", "Bash")},
			scenario: claudesim.Play(claudesim.Always(
				claudesim.Reply{Text: "Both.", Calls: append(claudesim.Bash("echo 1").Calls, claudesim.Bash("echo 2").Calls...)}, claudesim.Say("done"),
			)),
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.ElementsMatch(t, []string{"error=false 1", "error=false 2"}, o[0].Tools)
			},
			forget: func(o []observation) { // the real CLI runs the calls in parallel
				slices.Sort(o[0].Tools)
				for i := range o[0].Asked {
					slices.Sort(o[0].Asked[i].Results)
				}
			},
		},
		{
			name: "children know the session", launches: []launch{fresh("try", "--allowedTools", "Bash")},
			scenario: claudesim.Play(claudesim.Always(claudesim.Bash("echo $CLAUDE_CODE_SESSION_ID; test $$ = $(ps -o sid= -p $$) && echo own session"), claudesim.Say("done"))),
			want:     func(t *testing.T, _ claudesim.Version, o []observation) { require.Contains(t, o[0].Tools[0], idA) },
		},
		{
			name: "tool that is not there", launches: []launch{fresh("try", "--allowedTools", "Bash", "Write")},
			scenario: claudesim.Play(claudesim.Always(claudesim.Call("Write", write), claudesim.Say("done"))),
			want:     func(t *testing.T, _ claudesim.Version, o []observation) { require.Empty(t, last(t, o).Denials) },
		},
		{
			name:     "files by the rules",
			launches: []launch{fresh("try", "--tools", "Write", "--allowedTools", "Edit(./out.txt)", "Edit(./sub/**)", "Write(./other.txt)")},
			scenario: claudesim.Play(claudesim.Always(
				claudesim.Call("Write", write), writes("sub/in.txt"), writes("other.txt"), writes("out.txt.bak"), writes("sub/../x"), claudesim.Say("done"),
			)),
			want: func(t *testing.T, _ claudesim.Version, o []observation) { require.Len(t, last(t, o).Denials, 3) },
		},
		{
			name: "background work", launches: []launch{fresh("try", "--allowedTools", "Bash")},
			scenario: claudesim.Play(claudesim.Always(claudesim.BashInBackground("sleep 3; echo late"), claudesim.Say("waiting"), claudesim.Say("it finished"))),
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Len(t, o[0].Results, 2)
				require.Equal(t, "it finished", o[0].Results[1].Text)
			},
		},
	}
}

// signalCases cover signals in the middle of a run.
func signalCases() []contractCase {
	slow := claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "what happened"}, claudesim.Say("I was stopped.")),
		claudesim.Always(claudesim.Bash("echo $$ > started; sleep 60").Saying("Working."), claudesim.Say("done")),
	)
	stopped := func(
		name string, signal syscall.Signal, want func(t *testing.T, v claudesim.Version, o []observation), forget func(o []observation),
	) contractCase {
		work := fresh("work", "--allowedTools", "Bash")
		if signal == syscall.SIGTERM { // a program in place of the shell must not change the outcome
			work = hooked(work, "hook-program || exit 2")
		}
		work.signal = signal
		return contractCase{
			name: name, scenario: slow, want: want, forget: forget, launches: []launch{
				work, {prompt: "what happened?", args: []string{"--model", "haiku", "--resume", idA, "--tools", "Bash"}},
			},
		}
	}
	interrupted := stopped("interrupted in a tool", syscall.SIGINT, func(t *testing.T, _ claudesim.Version, o []observation) {
		require.Equal(t, "error_during_execution", last(t, o[:1]).Subtype)
		require.False(t, o[0].ToolSurvives)
		require.Contains(t, []int{0, 1}, o[0].Exit)
		require.Len(t, o[1].Asked, 1)
		require.Equal(t, []string{"work", "what happened?"}, o[1].Asked[0].Prompts)
	}, func(o []observation) {
		o[0].Exit = 0 // the real CLI exits with 0 or 1
		forgetCall(o)
	})
	interrupted.endsEarly = func(o []observation) bool { return len(o[0].Results) == 0 }
	return []contractCase{
		interrupted,
		stopped("terminated in a tool", syscall.SIGTERM, func(t *testing.T, _ claudesim.Version, o []observation) {
			require.Empty(t, o[0].Results)
			require.False(t, o[0].ToolSurvives)
			require.Len(t, o[1].Asked, 1)
		}, func(o []observation) {
			// The real CLI prints the result of the call that it has killed, unless it exits too early.
			o[0].Tools = nil
			o[0].Events = slices.DeleteFunc(o[0].Events, func(event string) bool { return event == "user/tool_result" })
			forgetCall(o)
		}),
		{
			name: "interrupted while the model thinks", launches: []launch{{
				prompt: "hi", args: []string{"--model", "haiku", "--session-id", idA, "--tools", "Bash"},
				signal: syscall.SIGINT, signalWhenAsked: true,
			}},
			scenario: claudesim.Play(claudesim.Always(claudesim.Say("late").After(10 * time.Second))),
			want: func(t *testing.T, _ claudesim.Version, o []observation) {
				require.Contains(t, []int{0, 1}, o[0].Exit)
				for _, r := range o[0].Results { // there is a result only if the signal arrives early
					require.Equal(t, "error_during_execution", r.Subtype)
				}
			},
			forget: func(o []observation) { o[0].Exit, o[0].Events, o[0].Results = 0, nil, nil },
		},
		stopped("killed in a tool", syscall.SIGKILL, func(t *testing.T, _ claudesim.Version, o []observation) {
			require.Equal(t, -1, o[0].Exit)
			require.Empty(t, o[0].Results)
			require.True(t, o[0].ToolSurvives)
			require.Len(t, o[1].Asked, 1)
			require.Len(t, o[1].Asked[0].Results, 1, "the CLI remembers the call")
		}, nil),
	}
}

// forgetCall removes the tool results from the second launch's requests. The CLI does not always keep the interrupted
// call of the first launch.
func forgetCall(o []observation) {
	for i := range o[1].Asked {
		o[1].Asked[i].Results = nil
	}
}
