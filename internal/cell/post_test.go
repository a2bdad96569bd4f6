package cell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/door"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// books is a ledger that admits at most limit actions of a kind for each service. A limit of 0 admits any number.
type books struct {
	mutex   sync.Mutex
	limit   int
	charged map[string][]guard.Action
}

func newBooks() *books { return &books{charged: map[string][]guard.Action{}} }

func (b *books) Charge(_ context.Context, call string, actions []guard.Action) (string, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	count := map[guard.Action]int{}
	for _, before := range b.charged {
		for _, action := range before {
			count[action]++
		}
	}
	for _, action := range actions {
		if b.limit > 0 && count[action] >= b.limit {
			return fmt.Sprintf("this is the third %s of %s", action.Kind, action.Service), nil
		}
	}
	b.charged[call] = actions
	return "", nil
}

func (b *books) Return(_ context.Context, call string) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.charged, call)
	return nil
}

// ask sends a question to a post as the CLI's processes do.
func ask(t *testing.T, post *cell.Post, question door.Question) door.Answer {
	t.Helper()
	connection, err := net.Dial("unix", post.Environment("", "")[door.SocketVariable])
	require.NoError(t, err)
	defer func() { require.NoError(t, connection.Close()) }()
	require.NoError(t, json.NewEncoder(connection).Encode(question))
	var answer door.Answer
	require.NoError(t, json.NewDecoder(connection).Decode(&answer))
	return answer
}

// calls returns the question of the PreToolUse hook about a command.
func calls(t *testing.T, id, command string) door.Question {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": id, "tool_input": map[string]string{"command": command},
	})
	require.NoError(t, err)
	return door.Question{Hook: text}
}

// wrapped returns a script of the form that the CLI makes of a command.
func wrapped(quoted string) door.Question {
	return door.Question{Script: "source /tmp/snapshot.sh 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && eval " +
		quoted + " < /dev/null && pwd -P >| /tmp/claude-1-cwd"}
}

func TestScriptRunsOnceIfItWasAllowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	post := s.open(2)
	defer func() { require.NoError(t, post.Close()) }()

	require.False(t, ask(t, post, wrapped(`'docker ps'`)).Allowed, "the hook was not asked")
	require.JSONEq(t, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`,
		string(ask(t, post, calls(t, "1", "docker ps")).Output))
	require.False(t, ask(t, post, wrapped(`'docker ps; reboot'`)).Allowed, "another command")
	require.False(t, ask(t, post, door.Question{Script: "docker ps"}).Allowed, "not the CLI's form")
	require.False(t, ask(t, post, door.Question{Script: "eval 'docker ps'; eval 'reboot'"}).Allowed)
	require.True(t, ask(t, post, wrapped(`'docker ps'`)).Allowed)
	require.False(t, ask(t, post, wrapped(`'docker ps'`)).Allowed, "it has run")

	ask(t, post, calls(t, "2", `echo "it's"`))
	require.True(t, ask(t, post, wrapped(`'echo "it'"'"'s"'`)).Allowed, "quotes in pieces")
	require.Contains(t, string(ask(t, post, calls(t, "3", "reboot")).Output), `"deny"`)
	require.False(t, ask(t, post, wrapped(`'reboot'`)).Allowed)
	require.NotEmpty(t, ask(t, post, door.Question{Hook: json.RawMessage(`{}`)}).Reason)
}

// TestWhatStartsIsCharged checks that restarts are charged when they start, each under an id of its own, and not
// before.
func TestWhatStartsIsCharged(t *testing.T) {
	t.Parallel()
	s := newSite(t, "docker")
	post := s.open(2)
	ask(t, post, calls(t, "never ran", "docker restart other"))
	ask(t, post, calls(t, "ran", "docker restart web"))
	shell := ask(t, post, wrapped(`'docker restart web'`))
	require.Empty(t, s.ledger.charged)
	start := door.Question{Ticket: shell.Ticket, Start: &door.Start{Words: []string{"docker", "restart", "web"}, Dir: s.work}}
	for range 2 {
		require.True(t, ask(t, post, start).Allowed)
	}
	start.Ticket = "guessed"
	require.False(t, ask(t, post, start).Allowed)
	require.NoError(t, post.Close())
	require.Len(t, s.ledger.charged, 2)
	for act, actions := range s.ledger.charged {
		require.Contains(t, act, "ran#")
		require.Equal(t, []guard.Action{{Kind: "restart", Service: "web"}}, actions)
	}
}

// TestACallIsDecidedOnOnce checks that a second question with the id of a call does not grant another run.
func TestACallIsDecidedOnOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, "docker")
	post := s.open(2)
	question := door.Question{Hook: json.RawMessage(
		`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"toolu_1","tool_input":{"command":"docker restart web"}}`)}
	require.Contains(t, string(ask(t, post, question).Output), `"allow"`)
	require.True(t, ask(t, post, door.Question{Script: "eval 'docker restart web'"}).Allowed)
	again := ask(t, post, question)
	require.Empty(t, again.Output)
	require.Equal(t, "this call was decided on already", again.Reason)
	require.False(t, ask(t, post, door.Question{Script: "eval 'docker restart web'"}).Allowed)
	require.NoError(t, post.Close())
}

func TestScriptsThatTheShellPutsTogetherDoNotRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	post := s.open(1)
	require.Contains(t, string(ask(t, post, door.Question{Hook: json.RawMessage(
		`{"tool_name":"Bash","tool_use_id":"toolu_1","tool_input":{"command":"ls "}}`)}).Output), `"allow"`)
	for _, script := range []string{
		`eval "ls $(evil)"`, `eval ls\ $(evil)`, `eval "ls $evil"`, `eval $'ls '`, `eval 'ls ' evil`, `eval 'ls '; eval evil`, `eval`, `ls`,
	} {
		require.False(t, ask(t, post, door.Question{Script: script}).Allowed, script)
	}
	require.True(t, ask(t, post, door.Question{Script: `eval 'ls '`}).Allowed)
	require.NoError(t, post.Close())
}

// TestAMissingVariableIsAChange checks that a program of Tiers 1 and 2 has all variables with which its shell started.
// Some of them protect: GIT_CONFIG_COUNT keeps git from running what a repository's configuration names.
func TestAMissingVariableIsAChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, "docker")
	given := []string{
		"GIT_CONFIG_COUNT=3", "HOME=/home/agent", "LANG=C.UTF-8", "PWD=/", "CLAUDE_CODE_MESSAGING_URL=x", "API_TOKEN=x", door.SocketVariable + "=x",
	}
	for _, tier := range []int{1, 3} {
		post := s.open(tier)
		ask(t, post, calls(t, "1", "docker ps"))
		question := wrapped(`'docker ps'`)
		question.Environ = given
		shell := ask(t, post, question)
		start := func(environ ...string) door.Answer {
			return ask(t, post, door.Question{
				Ticket: shell.Ticket, Start: &door.Start{Words: []string{"docker", "ps"}, Dir: s.work, Environ: environ},
			})
		}
		whole := start(given[:2]...)
		require.True(t, whole.Allowed, "the others are not for programs, or change nothing: %s", whole.Reason)
		require.Equal(t, tier == 3, start("HOME=/home/agent").Allowed)
		require.Equal(t, tier == 3, start("HOME=/home/agent", "GIT_CONFIG_COUNT=").Allowed)
		require.NoError(t, post.Close())
	}
}
