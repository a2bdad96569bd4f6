package daily

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/workflows"
)

// slowChains starts chains, and its answers come too late.
type slowChains struct {
	console.Chains

	started []string
}

func (s *slowChains) Start(_ context.Context, id string, _ workflows.ChainInput) (operations.Started, error) {
	s.started = append(s.started, id)
	return operations.Started{}, fmt.Errorf("the server ops cannot be reached: %w", context.DeadlineExceeded)
}

// appOf returns an app without a terminal that uses operations.
func appOf(of *console.Operations) *app {
	return &app{&console.Console{
		Process:    program.Process{Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: io.Discard},
		Clock:      time.Now,
		Operations: of,
	}}
}

// TestAfterATimeout checks that a command whose answer came too late says how to go on without paying twice.
func TestAfterATimeout(t *testing.T) {
	t.Parallel()
	chains := &slowChains{}
	a := appOf(&console.Operations{Server: "ops", Chains: chains})
	err := a.run(t.Context(), runOptions{actor: "ada"})
	require.Len(t, chains.started, 1)
	require.Regexp(t, "^chain-", chains.started[0], "the command knows the ID before it asks")
	require.ErrorContains(t, err, "the chain may have started: before you start another one, look with: claudeops chain "+chains.started[0])
	require.ErrorContains(t, a.run(t.Context(), runOptions{id: "nightly", actor: "ada"}), "look with: claudeops chain nightly")

	talks := &screenTalks{err: errors.New("no answer within 30s")}
	a = appOf(&console.Operations{Conversations: talks})
	err = a.sendOne(t.Context(), "ada", talkOptions{message: "how is nas?", actor: "ada"})
	id := regexp.MustCompile("with --message-id ([-0-9a-f]{36}) it is sent again and paid once").FindStringSubmatch(fmt.Sprint(err))
	require.Len(t, id, 2, "%v", err)
	require.Error(t, a.sendOne(t.Context(), "ada", talkOptions{message: "how is nas?", actor: "ada", messageID: id[1]}))
	require.Equal(t, []escalation.TalkMessage{{MessageID: id[1], Text: "how is nas?", Actor: "ada"}}, talks.sent[1:])
	require.Equal(t, talks.sent[0], talks.sent[1])
}
