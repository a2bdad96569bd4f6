package systemtest

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

	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// databaseVariable and portVariable tell temporalRole its database file and its port.
const (
	databaseVariable = "FAULTS_DATABASE"
	portVariable     = "FAULTS_PORT"
)

// temporalRole runs a Temporal server and prints its address. It ends when its standard input ends.
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

// temporalProcess is a Temporal server in a process of its own. It keeps its database file and its port when it is
// restarted.
type temporalProcess struct {
	*roleProcess
	file    string
	port    int
	address string
}

// newTemporalProcess chooses a file and a port, and starts no server. The port is below the range of ports that systems
// assign automatically. So the port is still free at a restart.
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

// start starts the server and waits until it answers.
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

// TestFaultTemporalKilled kills the Temporal server while Tier 2 is in a tool call, and restarts it on its file. It
// does so once before the agent has ended, and once after the worker had to end the agent.
func TestFaultTemporalKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	for name, tt := range map[string]struct {
		// pastDeadline keeps the server down until the worker has ended its agent.
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
				id = lingeringChain + id // the agent has acted already, and must not act again
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
