package embedded

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
)

func TestServerWorksAtOnce(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{NoUI: true})
	c := dial(t, server.Address())
	startWorker(t, c)

	run := execute(t, c, sleepThenSay, time.Millisecond, "done")

	var said string
	require.NoError(t, run.Get(testContext(t), &said))
	require.Equal(t, "done", said)
	require.Empty(t, server.UIURL(), "there is no Web UI")
	require.Empty(t, server.WorkflowURL("default", "a", "b"), "there is no Web UI")
}

func TestServersAreSeparate(t *testing.T) {
	t.Parallel()
	first := dial(t, startServer(t, Options{NoUI: true}).Address())
	second := dial(t, startServer(t, Options{NoUI: true}).Address())
	startWorker(t, first)

	run := execute(t, first, nineActivities)

	_, err := second.DescribeWorkflowExecution(testContext(t), run.GetID(), run.GetRunID())
	require.ErrorContains(t, err, "not found")
}

func TestNamespaceAndRetention(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/temporal.db"
	retention := func(want time.Duration) time.Duration {
		server := startServer(t, Options{DatabaseFile: file, Namespace: "ops", Retention: want, NoUI: true})
		c := dial(t, server.Address())
		found, err := c.WorkflowService().DescribeNamespace(testContext(t), &workflowservice.DescribeNamespaceRequest{Namespace: "ops"})
		require.NoError(t, err)
		require.NoError(t, server.Stop())
		return found.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	}
	require.Equal(t, DefaultRetention, retention(0))
	require.Equal(t, 48*time.Hour, retention(48*time.Hour), "a namespace that exists follows")
}

func TestStopIsBoundedAndIdempotent(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{})
	c := dial(t, server.Address())
	startWorker(t, c) // the worker's long polls are open when the server stops

	stopped := make(chan error, 2)
	for range 2 {
		go func() { stopped <- server.Stop() }()
	}
	for range 2 {
		select {
		case err := <-stopped:
			require.NoError(t, err)
		case <-time.After(stopTimeout + uiStopTimeout + 5*time.Second):
			t.Fatal("Stop did not return")
		}
	}
}

func TestStartedAgainGoesOn(t *testing.T) {
	t.Parallel()
	skipShort(t)
	// Use a path with characters that have a meaning in SQLite's URLs.
	file := t.TempDir() + "/a b?c#d%41.db"
	first, err := Start(t.Context(), Options{DatabaseFile: file, NoUI: true})
	require.NoError(t, err)
	runID := startSleep(t, first.Address(), "orderly", 500*time.Millisecond)
	require.NoError(t, first.Stop())
	require.NotZero(t, fileSize(t, file), "the state is in another file")
	require.Zero(t, fileSize(t, file+"-wal"), "the main file alone is not whole")

	second := startServer(t, Options{DatabaseFile: file, NoUI: true})

	requireSaid(t, second.Address(), "orderly", runID)
}

// TestKilledServerGoesOn kills a process while a timer runs. The next process on the same file must continue
// the workflow.
func TestKilledServerGoesOn(t *testing.T) {
	t.Parallel()
	skipShort(t)
	file := t.TempDir() + "/temporal.db"
	victim, address := startProcess(t, file)
	runID := startSleep(t, address, "killed", 3*time.Second)
	requireTimerStarted(t, address, "killed", runID)
	require.NoError(t, victim.Process.Kill())
	_ = victim.Wait() // the error says that it was killed

	server := startServer(t, Options{DatabaseFile: file, NoUI: true})

	requireSaid(t, server.Address(), "killed", runID)
}

func TestFileBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	skipShort(t)
	file := t.TempDir() + "/temporal.db"
	_, _ = startProcess(t, file)

	_, err := Start(t.Context(), Options{DatabaseFile: file, NoUI: true})

	require.ErrorContains(t, err, "another server uses this database")
}

// TestServerThatGivesUpIsAnError checks that Start returns an error if a service cannot listen. The server logs
// a fatal line, which must not end the process.
func TestServerThatGivesUpIsAnError(t *testing.T) {
	t.Parallel()
	skipShort(t)
	ports, err := reservePorts(0)
	require.NoError(t, err)
	t.Cleanup(ports.release)
	listen(t, ports.number("history"))
	db, err := openDatabase(t.Context(), "")
	require.NoError(t, err)
	s := &Server{database: db, logger: newServerLogger(slog.New(slog.DiscardHandler), slog.LevelError)}
	t.Cleanup(func() { require.NoError(t, s.Stop()) })

	require.ErrorContains(t, s.launch(ports, Options{}.withDefaults()), "address already in use")
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	skipShort(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	server, err := Start(ctx, Options{Logger: slog.New(slog.DiscardHandler)})

	require.Error(t, err)
	require.Nil(t, server)
}
