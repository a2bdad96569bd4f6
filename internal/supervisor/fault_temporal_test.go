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
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/embedded"
	"github.com/claudeops/claudeops/internal/escalation"
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

// longOutageEvery is how often an outage is so long that agents must be ended, among the others.
const longOutageEvery = 7

// TestFaultTemporalKilled kills the Temporal server at random moments while chains run, and starts it
// again on its file, mostly soon, sometimes only after workers had to end their agents.
func TestFaultTemporalKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	server := newTemporalProcess(t)
	server.start(t)
	c := connect(t, server.address)
	require.NoError(t, supervisor.SetUpNamespace(t.Context(), c, client.DefaultNamespace))
	f := newFaultSite(t, c)
	worker := startWorker(t, f.environ, server.address)
	worker.awaitReady(t)
	dice, seed := newDice()
	began := time.Now()

	over := make(chan struct{})
	lanes := f.runLanes(t, over)
	away, slowest := f.killTimes(t, server, *faultKills, dice)
	close(over)
	chains := lanes()
	worker.drain(t)
	t.Logf("faults: Temporal killed: kills=%d away=%s slowest_return=%s %s took=%s seed=%d", *faultKills, away.Round(time.Second), slowest.Round(time.Second),
		f.requireUnharmed(t, chains), time.Since(began).Round(time.Second), seed)
}

// killTimes kills the server that often while agents start, and returns how long it was away in all, and
// how long it took at most from its return until the next agent started.
func (f *faultSite) killTimes(t *testing.T, server *temporalProcess, times int, dice *rand.Rand) (away, slowest time.Duration) {
	t.Helper()
	for i := range times {
		f.awaitLaunch(t)
		time.Sleep(moment(dice, 2*time.Second))
		died := time.Now()
		server.kill(t)
		pause := moment(dice, 3*time.Second)
		if i%longOutageEvery == longOutageEvery-1 {
			pause += 17 * time.Second
		}
		time.Sleep(pause)
		server.start(t)
		away += time.Since(died)
		back := time.Now()
		f.awaitLaunch(t)
		slowest = max(slowest, time.Since(back))
	}
	return away, slowest
}

// awaitLaunch returns when one more agent has started.
func (f *faultSite) awaitLaunch(t *testing.T) {
	t.Helper()
	before := len(simtest.Launches(t, f.claude))
	simtest.AwaitLaunches(t, f.claude, before+1, testTimeout)
}

// runLanes runs chains, some at a time and one after another, until over. The function that it returns
// waits for those that still run and returns all.
func (f *faultSite) runLanes(t *testing.T, over <-chan struct{}) (wait func() []escalation.Chain) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), faultLimit)
	t.Cleanup(cancel)
	var running sync.WaitGroup
	var mu sync.Mutex
	var chains []escalation.Chain
	lane := func(name, service string) {
		for i := 0; ; i++ {
			chain, err := f.run(ctx, fmt.Sprintf("%s-%d", name, i), service)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			chains = append(chains, chain)
			mu.Unlock()
			select {
			case <-over:
				return
			default:
			}
		}
	}
	names := []string{"chain-a", "chain-b", "chain-c", "chain-d"}
	if *faultKills >= longOutageEvery {
		names = append(names, slowChain+"a", slowChain+"b")
	}
	for i, name := range names {
		running.Go(func() { lane(name, serviceOf(i)) })
	}
	return func() []escalation.Chain {
		running.Wait()
		return chains
	}
}
