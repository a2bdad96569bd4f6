package supervisor_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/embedded"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// What temporalRole serves: a file, and a port.
const (
	databaseVariable = "FAULTS_DATABASE"
	portVariable     = "FAULTS_PORT"
)

// temporalRole is a Temporal server. It prints its address.
func temporalRole() error {
	port, err := strconv.Atoi(os.Getenv(portVariable))
	if err != nil {
		return err
	}
	server, err := embedded.Start(context.Background(), embedded.Options{
		DatabaseFile: os.Getenv(databaseVariable), FrontendPort: port, NoUI: true,
	})
	if err != nil {
		return err
	}
	fmt.Println(server.Address())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, server.Stop())
}

// temporalProcess is a Temporal server in a process of its own, which keeps its file and its
// port from one life to the next.
type temporalProcess struct {
	*roleProcess
	file    string
	port    int
	address string
}

// newTemporalProcess has no server yet. Its port is none that a system gives to who asks for a free one:
// it shall be free when the server comes back.
func newTemporalProcess(t *testing.T) *temporalProcess {
	t.Helper()
	p := &temporalProcess{file: filepath.Join(t.TempDir(), "temporal.db")}
	require.Eventually(t, func() bool {
		p.port = 20_000 + rand.IntN(10_000) //nolint:gosec // a port, no secret
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)))
		return err == nil && listener.Close() == nil
	}, testTimeout, time.Millisecond)
	return p
}

// start starts the server and returns when it answers.
func (p *temporalProcess) start(t *testing.T) {
	t.Helper()
	reader, writer := io.Pipe()
	p.roleProcess = startRole(t, "temporal", writer, databaseVariable+"="+p.file, portVariable+"="+strconv.Itoa(p.port), "HOME="+t.TempDir())
	said := p.said
	overdue := time.AfterFunc(testTimeout, func() { _ = writer.CloseWithError(errors.New("the server does not start")) })
	line, err := bufio.NewReader(reader).ReadString('\n')
	overdue.Stop()
	require.NoError(t, err, said.text())
	p.address = strings.TrimSpace(line)
	go func() { _, _ = io.Copy(io.Discard, reader) }()
}

// TestFaultTemporalKilled kills the Temporal server while Tier 2 is in a tool call, and starts it again on its
// file: once before the agent has ended, and once when the worker has had to end it.
func TestFaultTemporalKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	for name, tt := range map[string]struct {
		// pastDeadline keeps the server away until the worker has ended its agent.
		pastDeadline bool
		starts       int
	}{
		"while_the_agent_works":    {false, 2},
		"until_the_agent_is_ended": {true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newTemporalProcess(t)
			server.start(t)
			c := connect(t, server.address)
			require.NoError(t, supervisor.SetUpNamespace(t.Context(), c, client.DefaultNamespace))
			f := newFaultSite(t, c, 1)
			startWorker(t, f.environ, server.address)
			id := "killed-" + name
			if tt.pastDeadline {
				id = lingeringChain + id // it has acted, and must not do so again
			}
			end := f.begin(t, id)
			require.Eventually(t, exists(filepath.Join(f.effects, id)), testTimeout, 5*time.Millisecond)
			server.kill(t)
			if tt.pastDeadline {
				requireGone(t, "CLAUDEOPS_CHAIN_ID="+id)
			}
			server.start(t)
			chain := end()
			require.GreaterOrEqual(t, len(simtest.Launches(t, f.claude)), tt.starts)
			t.Logf("faults: Temporal killed %s: %d attempts", name, chain.Sessions[1].Attempts)
		})
	}
}
