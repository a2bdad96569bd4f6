package hook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/agentshell"
	"github.com/claudeops/claudeops/internal/guard"
	"github.com/claudeops/claudeops/internal/hook"
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
func ask(t *testing.T, post *hook.Post, question agentshell.Question) agentshell.Answer {
	t.Helper()
	connection, err := net.Dial("unix", post.Environment("")[agentshell.SocketVariable])
	require.NoError(t, err)
	defer func() { require.NoError(t, connection.Close()) }()
	require.NoError(t, json.NewEncoder(connection).Encode(question))
	var answer agentshell.Answer
	require.NoError(t, json.NewDecoder(connection).Decode(&answer))
	return answer
}

// calls returns the question of the PreToolUse hook about a command.
func calls(t *testing.T, id, command string) agentshell.Question {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": id, "tool_input": map[string]string{"command": command},
	})
	require.NoError(t, err)
	return agentshell.Question{Hook: text}
}

// wrapped returns the script that the CLI makes of a command (measured on 2.1.197 and 2.1.330).
func wrapped(quoted string) agentshell.Question {
	return agentshell.Question{Script: "source /tmp/snapshot.sh 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && eval " +
		quoted + " < /dev/null && pwd -P >| /tmp/claude-1-cwd"}
}

func TestScriptRunsOnceIfItWasAllowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	post := s.open(2)
	defer func() { require.NoError(t, post.Close(t.Context())) }()

	require.False(t, ask(t, post, wrapped(`'docker ps'`)).Run, "the hook was not asked")
	require.JSONEq(t, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`,
		string(ask(t, post, calls(t, "1", "docker ps")).Output))
	require.False(t, ask(t, post, wrapped(`'docker ps; reboot'`)).Run, "another command")
	require.False(t, ask(t, post, agentshell.Question{Script: "docker ps"}).Run, "not the CLI's form")
	require.False(t, ask(t, post, agentshell.Question{Script: "eval 'docker ps'; eval 'reboot'"}).Run)
	require.True(t, ask(t, post, wrapped(`'docker ps'`)).Run)
	require.False(t, ask(t, post, wrapped(`'docker ps'`)).Run, "it has run")

	ask(t, post, calls(t, "2", `echo "it's"`))
	require.True(t, ask(t, post, wrapped(`'echo "it'"'"'s"'`)).Run, "quotes in pieces")
	require.Contains(t, string(ask(t, post, calls(t, "3", "reboot")).Output), `"deny"`)
	require.False(t, ask(t, post, wrapped(`'reboot'`)).Run)
	require.NotEmpty(t, ask(t, post, agentshell.Question{Hook: json.RawMessage(`{}`)}).Reason)
}

func TestCloseGivesBackWhatNeverRan(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	post := s.open(2)
	ask(t, post, calls(t, "ran", "docker restart a"))
	ask(t, post, calls(t, "never ran", "docker restart b"))
	require.True(t, ask(t, post, wrapped(`'docker restart a'`)).Run)
	require.Len(t, s.ledger.charged, 2)
	require.NoError(t, post.Close(t.Context()))
	require.Equal(t, map[string][]guard.Action{"ran": {{Kind: "restart", Service: "a"}}}, s.ledger.charged)
}

// TestACallIsDecidedOnOnce checks that a second question with the id of a call does not cancel the call's booking.
func TestACallIsDecidedOnOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, "docker")
	post := s.open(2)
	question := agentshell.Question{Hook: json.RawMessage(
		`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"toolu_1","tool_input":{"command":"docker restart web"}}`)}
	require.Contains(t, string(ask(t, post, question).Output), `"allow"`)
	require.True(t, ask(t, post, agentshell.Question{Script: "eval 'docker restart web'"}).Run)
	again := ask(t, post, question)
	require.Empty(t, again.Output)
	require.Equal(t, "this call was decided on already", again.Reason)
	require.NoError(t, post.Close(t.Context()))
	require.Len(t, s.ledger.charged, 1, "it ran, and counts")
}

func TestScriptsThatTheShellPutsTogetherDoNotRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	post := s.open(1)
	require.Contains(t, string(ask(t, post, agentshell.Question{Hook: json.RawMessage(
		`{"tool_name":"Bash","tool_use_id":"toolu_1","tool_input":{"command":"ls "}}`)}).Output), `"allow"`)
	for _, script := range []string{
		`eval "ls $(evil)"`, `eval ls\ $(evil)`, `eval "ls $evil"`, `eval $'ls '`, `eval 'ls ' evil`, `eval 'ls '; eval evil`, `eval`, `ls`,
	} {
		require.False(t, ask(t, post, agentshell.Question{Script: script}).Run, script)
	}
	require.True(t, ask(t, post, agentshell.Question{Script: `eval 'ls '`}).Run)
	require.NoError(t, post.Close(t.Context()))
}
