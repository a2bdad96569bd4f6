package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// serveFileVariable makes the test binary serve the database file that it names, instead of running tests.
const serveFileVariable = "CLAUDEOPS_TEST_SERVE_DATABASE"

// testQueue is the task queue of the tests' workers.
const testQueue = "embedded-test"

// testTimeout limits every wait of a test.
const testTimeout = 3 * time.Minute

func TestMain(m *testing.M) {
	if file := os.Getenv(serveFileVariable); file != "" {
		if err := serveFile(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveFile serves file and prints the frontend's address on a line of its own. It runs until its standard
// input ends, which also happens if the test that started it dies.
func serveFile(file string) error {
	server, err := Start(context.Background(), Options{DatabaseFile: file, NoUI: true})
	if err != nil {
		return err
	}
	fmt.Println(server.Address())
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, server.Stop())
}

// startServer starts a server and stops it at the end of the test. In short mode it skips the test.
func startServer(t testing.TB, o Options) *Server {
	t.Helper()
	skipShort(t)
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	}
	server, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; run without -short")
	}
}

// testWriter writes the server's log to the log of its test.
type testWriter struct{ testing.TB }

var _ io.Writer = testWriter{}

func (w testWriter) Write(line []byte) (int, error) {
	w.Logf("%s", line)
	return len(line), nil
}

// dial connects a client without logging. It is closed at the end of the test.
func dial(t testing.TB, address string) client.Client {
	t.Helper()
	return dialWith(t, address, "")
}

// dialWith connects a client like dial, with a token.
func dialWith(t testing.TB, address string, given token) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), given.clientOptions(client.Options{HostPort: address, Logger: slog.New(slog.DiscardHandler)}))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// startWorker runs a worker until the end of the test.
func startWorker(t testing.TB, c client.Client) {
	t.Helper()
	w := newWorker(c)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

// newWorker returns a worker with the tests' workflows and activities.
func newWorker(c client.Client) worker.Worker {
	w := worker.New(c, testQueue, worker.Options{})
	w.RegisterWorkflow(nineActivities)
	w.RegisterWorkflow(tenShortTimers)
	w.RegisterWorkflow(sleepThenSay)
	w.RegisterWorkflow(waitForName)
	w.RegisterWorkflow(chainAttributes)
	w.RegisterActivity(nothing)
	return w
}

// listen opens a port of the loopback address until the end of the test.
func listen(t testing.TB, port int) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", hostPort(port))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener
}

// testContext returns a context that ends with the test, or after testTimeout.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// execute runs a workflow to its end.
func execute(t testing.TB, c client.Client, workflow any, args ...any) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{TaskQueue: testQueue}, workflow, args...)
	require.NoError(t, err)
	require.NoError(t, run.Get(testContext(t), nil))
	return run
}
