package cli

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/api"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// serveAPI starts a web server beside what environ describes. It returns the environment of ada's laptop, on which
// there are neither a worker nor records.
func serveAPI(t *testing.T, environ []string) []string {
	t.Helper()
	logger := (&console.Console{Process: program.Process{Stderr: t.Output()}}).QuietLogger()
	o := operations.New(operations.Options{
		Environ: environ, Logger: logger, Clock: chaintest.Clock, Patience: clitest.Timeout, Masked: func() {},
	})
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	hub := stream.NewHub(func() stream.Source { return o.Feed.Watch() }, logger)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(stop)
	go hub.Run(ctx)
	who, err := access.New(access.Options{
		Owner: access.Owner{Name: "ada", Secret: "adas-token"}, KeyFile: filepath.Join(t.TempDir(), "key"), Logger: logger,
	})
	require.NoError(t, err)
	server, err := web.New(web.Options{
		Access: who, Parts: []web.Part{api.New(o, hub, "test")}, Hosts: []string{"127.0.0.1"}, Logger: logger,
	})
	require.NoError(t, err)
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	t.Cleanup(listening.CloseClientConnections)
	return clitest.Environment(t, "USER=ada", "CLAUDEOPS_SERVER="+listening.URL, "CLAUDEOPS_TOKEN=adas-token")
}

// TestServerDoesTheSame runs commands beside the worker and through a server, and compares outputs and exit codes.
func TestServerDoesTheSame(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	clitest.RecordIncidents(t, s.environ)
	laptop := serveAPI(t, s.environ)
	s.plays(t, "chain-gate", scene{Chain: chaintest.Waiting(chaintest.OpenedGate())}, scene{})
	s.plays(t, "chain-work", scene{Chain: chaintest.Working(), Progress: chaintest.ToolsInFlight()}, scene{})
	s.plays(t, "chain-over", scene{Chain: chaintest.Overridden(chaintest.OpenedGate())})
	for _, schedule := range []string{"hourly", "nightly"} {
		made := worked(t, s.environ, "schedule", "create", schedule, "--every", "720h", "--note", "a note", "--paused")
		require.Equal(t, program.ExitOK, made.Code, made.Stderr)
	}
	require.Eventually(t, func() bool {
		listed, scheduled := worked(t, s.environ, "gate").Stdout, worked(t, s.environ, "schedule", "list").Stdout
		chains := worked(t, s.environ, "chains").Stdout
		return strings.Contains(listed, "chain-gate") && strings.Contains(scheduled, "nightly") && strings.Contains(scheduled, "hourly") &&
			strings.Contains(chains, "chain-work") && strings.Contains(chains, "chain-over") &&
			regexp.MustCompile("chain-over +completed").MatchString(chains)
	}, clitest.Timeout, clitest.Look, "Temporal's lists are not up to date")

	same := func(args ...string) clitest.Result {
		t.Helper()
		local, remote := worked(t, s.environ, args...), worked(t, laptop, args...)
		require.Equal(t, local, remote, args)
		return local
	}
	for _, args := range [][]string{
		{"chains"},
		{"chains", "--running", "--limit", "1"},
		{"chains", "--limit", "5000"},
		{"chains", "--limit", "0"},
		{"chains", "--outcome", "odd"},
		{"chains", "--tier", "2", "--since", "1h", "--service", "nas", "--trigger", "manual"},
		{"chain", "chain-work"},
		{"chain", "chain-over", "--calls"},
		{"chain", "chain-gone"},
		{"chain", "1"},
		{"chain", "1", "--calls"},
		{"chain", "99"},
		{"chain", "odd/id ?%#"},
		{"watch", "chain-over"},
		{"watch", "chain-gone"},
		{"gate"},
		{"gate", "chain-gate"},
		{"gate", "chain-work"},
		{"gate", "chain-gone"},
		{"gate", "chain-gate", "--action", "x"},
		{"gate", "chain-gate", "--gate", "gate-7", "--action", "f"},
		{"incidents"},
		{"incidents", "--all"},
		{"incidents", "--service", "jellyfin"},
		{"incidents", "--state", "odd"},
		{"incidents", "--limit", "1"},
		{"incidents", "show", "1"},
		{"incidents", "show", "incident-3"},
		{"incidents", "show", "99"},
		{"incidents", "show", "x"},
		{"incidents", "close", "3"},
		{"incidents", "close", "99"},
		{"incidents", "close", "2", "--reason", strings.Repeat("x", 5_000)},
		{"schedule", "list"},
		{"schedule", "describe", "hourly"},
		{"schedule", "describe", "none"},
		{"schedule", "pause", "none"},
		{"schedule", "trigger", "hourly", "--overlap", "odd"},
		{"schedule", "trigger", "hourly", "--overlap", "terminate_other"},
		{"schedule", "pause", "hourly", "--note", "for the test"},
		{"schedule", "resume", "hourly"},
		{"schedule", "trigger", "nightly"},
		{"memory"},
		{"memory", "list", "--kind", "odd"},
		{"memory", "list", "--search", "disk", "--status", "deleted"},
		{"memory", "show", "9"},
		{"memory", "confirm", "x"},
		{"memory", "edit", "9", "--text", "all is well"},
		{"memory", "add", "all is well"},
		{"memory", "export"},
		{"talk", "grace", "--history", "3"},
		{"talk", "grace", "--confirm", "1"},
		{"talk", "a b", "-m", "x"},
		{"escalate", "chain-gone", "--to", "2"},
		{"escalate", "chain-work", "--to", "3", "--reason", "it burns"},
		{"cancel", "chain-over"},
		{"cancel", "chain-gone"},
		{"run", "--id", "chain-work"},
		{"run", "--id", "7"},
		{"run", "--tier", "3", "--max-tier", "2"},
		{"run", "--prompt", strings.Repeat("long ", 30_000)},
	} {
		same(args...)
		same(append(args, "-o", "json")...)
	}
	require.Contains(t, same("incidents").Stdout, "jellyfin")
	requireFollows(t, s, laptop)
	requireActs(t, s, laptop)
}

// requireFollows follows a chain to its end in both ways.
func requireFollows(t *testing.T, s *stage, laptop []string) {
	t.Helper()
	s.plays(t, "chain-live", scene{Chain: chaintest.Waiting(chaintest.OpenedGate())}, scene{Chain: chaintest.Overridden(chaintest.OpenedGate())})
	var watching sync.WaitGroup
	var local, remote clitest.Result
	watching.Go(func() { local = worked(t, s.environ, "watch", "chain-live") })
	watching.Go(func() { remote = worked(t, laptop, "watch", "chain-live") })
	s.next(t, "chain-live")
	watching.Wait()
	require.Equal(t, local, remote)
	require.Contains(t, remote.Stdout, "Outcome: accepted by a person")
}

// requireActs starts a chain, answers a gate, closes an incident and pauses a schedule through a server.
func requireActs(t *testing.T, s *stage, laptop []string) {
	t.Helper()
	started := worked(t, laptop, "run", "--id", "from-afar", "--service", "nas", "--dry-run", "--model", "tier2=opus")
	require.Equal(t, clitest.Result{Code: program.ExitOK, Stdout: "Started chain from-afar. See it with: claudeops chain from-afar\n"}, started)
	named := worked(t, laptop, "run")
	require.Regexp(t, `^Started chain chain-\d{8}-\d{6}-[0-9a-f]{6}\. `, named.Stdout, named.Stderr)
	answered := worked(t, laptop, "gate", "chain-gate", "--action", "c: mind the lock")
	require.Equal(t, clitest.Result{Code: program.ExitOK, Stdout: "What is next: continue_session.\nFollow it with: claudeops watch chain-gate\n"}, answered)
	require.Equal(t, []escalation.GateAnswer{
		{GateID: "gate-1", Action: escalation.GateContinue, Guidance: "mind the lock", Actor: "ada", Verified: true},
	}, s.answers(t, "chain-gate"))
	closed := worked(t, laptop, "incidents", "close", "2", "--reason", "the disk is replaced", "-o", "json")
	require.Contains(t, closed.Stdout, `"resolved_by": "ada"`, closed.Stderr)

	paused := worked(t, append(laptop, "FLEET_TOKEN=fleet-value-4711"), "schedule", "pause", "hourly", "--note", "fleet-value-4711")
	require.Equal(t, console.MaskedHint, paused.Stderr)
	require.Contains(t, worked(t, s.environ, "schedule", "describe", "hourly").Stdout, "[masked: FLEET_TOKEN]")
}

func TestServerMisuse(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("from-file\n"), 0o600))
	for name, tt := range map[string]struct {
		args, environ []string
		code          program.ExitCode
		want          string
	}{
		"a command for the worker": {[]string{"doctor", "--server", server.URL}, nil, program.ExitUsage, "`claudeops doctor` works beside the worker only: run it there, without --server and CLAUDEOPS_SERVER"},
		"a subcommand":             {[]string{"schedule", "create", "x", "--every", "1h"}, []string{"CLAUDEOPS_SERVER=" + server.URL}, program.ExitUsage, "`claudeops schedule create` works beside the worker only"},
		"moving chains":            {[]string{"chains", "move", "x", "--server", server.URL}, nil, program.ExitUsage, "`claudeops chains move` works beside the worker only"},
		"a command without either": {[]string{"config"}, []string{"CLAUDEOPS_SERVER=" + server.URL}, program.ExitOK, ""},
		"no token":                 {[]string{"chains", "--server", server.URL}, nil, program.ExitUsage, "the server needs a token: set CLAUDEOPS_TOKEN"},
		"no file of a token":       {[]string{"chains", "--server", server.URL}, []string{"CLAUDEOPS_TOKEN_FILE=/nonexistent"}, program.ExitUsage, "CLAUDEOPS_TOKEN_FILE: open /nonexistent: no such file"},
		"a name":                   {[]string{"run", "--actor", "grace", "--server", server.URL}, nil, program.ExitUsage, "--actor does not go with a server: it takes the name from your token"},
		"no address":               {[]string{"chains", "--server", "ops.example"}, []string{"CLAUDEOPS_TOKEN=x"}, program.ExitUsage, "the server must be an address such as https://ops.example"},
		"a token that others read": {[]string{"chains", "--server", "http://ops.example"}, []string{"CLAUDEOPS_TOKEN=x"}, program.ExitUsage, "the server ops.example must begin with https://"},
		"not Claude Ops":           {[]string{"chains", "--server", server.URL}, []string{"CLAUDEOPS_TOKEN_FILE=" + token}, program.ExitFailure, "is this the address of Claude Ops?"},
		"nobody there":             {[]string{"chains", "--server", "http://127.0.0.1:1"}, []string{"CLAUDEOPS_TOKEN=x"}, program.ExitFailure, "the server 127.0.0.1:1 cannot be reached: "},
		"nobody to follow there":   {[]string{"watch", "x", "--server", "http://127.0.0.1:1"}, []string{"CLAUDEOPS_TOKEN=x"}, program.ExitFailure, "the server 127.0.0.1:1 cannot be reached: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := starter(t, clitest.Environment(t, tt.environ...), tt.args...)
			require.Equal(t, tt.code, got.Code, got.Stderr)
			require.Contains(t, got.Stderr, tt.want)
		})
	}
}
