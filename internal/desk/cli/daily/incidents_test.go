package daily

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// incidentEnvironment returns an environment without Temporal, whose records have the incidents of recordIncidents.
func incidentEnvironment(t *testing.T) []string {
	t.Helper()
	environ := clitest.Environment(t, "FLEET_TOKEN="+clitest.Secrets[1])
	clitest.RecordIncidents(t, environ)
	return environ
}

func TestIncidentsAsText(t *testing.T) {
	t.Parallel()
	environ := incidentEnvironment(t)
	for file, args := range map[string][]string{
		"incidents.txt":         {"incidents"},
		"incidents-all.txt":     {"incidents", "list", "--all"},
		"incident-waiting.txt":  {"incidents", "show", "1"},
		"incident-repaired.txt": {"incidents", "show", "incident-3"},
	} {
		shown := atNoon(t, environ, args...)
		require.Equal(t, program.ExitOK, shown.Code, shown.Stderr)
		require.Empty(t, shown.Stderr)
		require.NotContains(t, shown.Stdout, "\x1b")
		clitest.RequireNoSecret(t, shown.Stdout)
		chaintest.RequireGolden(t, file, []byte(shown.Stdout))
	}
	require.Equal(t, atNoon(t, environ, "incidents").Stdout, atNoon(t, environ, "incidents", "list").Stdout)
	narrow := onScreen(t, environ, 60, 24, "incidents", "--all")
	require.Equal(t, program.ExitOK, narrow.Ends())
	narrow.Is("incidents-60")
	require.NotContains(t, narrow.Sent(), "\x1b]0;")
}

func TestIncidentsAsJSON(t *testing.T) {
	t.Parallel()
	environ := incidentEnvironment(t)
	shown := atNoon(t, environ, "incidents", "show", "incident-1", "-o", "json")
	require.Equal(t, program.ExitOK, shown.Code, shown.Stderr)
	clitest.RequireNoSecret(t, shown.Stdout)
	var view operations.Incident
	require.NoError(t, json.Unmarshal([]byte(shown.Stdout), &view))
	require.Equal(t, "chain-second", view.Handler)
	require.Equal(t, escalation.IncidentWaiting, view.State)
	require.Equal(t, 1, view.Returned)
	require.InDelta(t, 1.0, view.CostUSD, 1e-9)
	require.Len(t, view.Chains, 2)
	require.Equal(t, escalation.TierSafeRepair, view.Chains[0].Tier)
	require.Equal(t, escalation.OutcomeResolved, view.Chains[0].Outcome)
	require.Equal(t, "restarted it with [masked: FLEET_TOKEN]", view.Chains[0].Did)

	var rows []map[string]any
	listed := atNoon(t, environ, "incidents", "--limit", "1", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(listed.Stdout), &rows))
	require.Len(t, rows, 1)
	require.Equal(t, "incident-2", rows[0]["id"])
	require.Equal(t, []any{"The NAS"}, rows[0]["services"])
	require.NotContains(t, rows[0], "handler", "its chain has ended")
	clitest.RequireNoSecret(t, listed.Stdout)
	require.Contains(t, atNoon(t, environ, "incidents", "--limit", "1").Stdout, "\n2 more; see them with --limit\n")
}

func TestIncidentsFilter(t *testing.T) {
	t.Parallel()
	environ := incidentEnvironment(t)
	for args, want := range map[string][]string{
		"":                                {"incident-2", "incident-4", "incident-1"},
		"--all":                           {"incident-2", "incident-4", "incident-1", "incident-3"},
		"--state open":                    {"incident-2"},
		"--state waiting":                 {"incident-1"},
		"--state repairing":               {"incident-4"},
		"--state resolved":                {"incident-3"},
		"--service JELLYFIN":              {"incident-1"},
		"--service web":                   {},
		"--service web --all":             {"incident-3"},
		"--service nobody --all":          {},
		"--service jellyfin --state open": {},
	} {
		got := atNoon(t, environ, slices.Concat([]string{"incidents", "list", "-o", "json"}, strings.Fields(args))...)
		require.Equal(t, program.ExitOK, got.Code, got.Stderr)
		var rows []operations.Incident
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &rows))
		ids := []string{}
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		require.Equal(t, want, ids, args)
	}
	require.Equal(t, "[]\n", atNoon(t, environ, "incidents", "--service", "nobody", "-o", "json").Stdout)
	require.Equal(t, "No incidents.\n", atNoon(t, environ, "incidents", "--service", "nobody").Stdout)
}

// TestIncidentsOfAnAlias finds an incident by another name of its service.
func TestIncidentsOfAnAlias(t *testing.T) {
	t.Parallel()
	environ := append(clitest.Environment(t), "CLAUDEOPS_SERVICES_FILE="+clitest.ServicesFile(t))
	require.NoError(t, clitest.OpenRecords(t, environ).Close())
	require.Equal(t, "No open incidents.\n", atNoon(t, environ, "incidents").Stdout)
	clitest.Records{T: t, Store: clitest.OpenRecords(t, environ)}.Ran("chain-nas", 1, chaintest.Noon,
		clitest.Finds(escalation.VerdictEscalate, "", escalation.SeverityWarning, "it is full", "nas"))
	require.Contains(t, atNoon(t, environ, "incidents", "--service", "The  Nas").Stdout, "incident-1")
}

func TestCloseIncident(t *testing.T) {
	t.Parallel()
	environ := incidentEnvironment(t)
	closed := atNoon(t, environ, "incidents", "close", "1", "--actor", "ada", "--reason", "replaced the\ndisk "+clitest.Secrets[1])
	require.Equal(t, program.ExitOK, closed.Code, closed.Stderr)
	require.Contains(t, closed.Stderr, console.MaskedHint)
	require.Contains(t, closed.Stderr, "claudeops: the chains of incident-1 could not be told: connect to Temporal at 127.0.0.1:1: ")
	chaintest.RequireGolden(t, "incident-close-waiting.txt", []byte(closed.Stdout))
	incident, err := clitest.OpenRecords(t, environ).Incident(t.Context(), "incident-1")
	require.NoError(t, err)
	require.Equal(t, "ada", incident.ResolvedBy)
	require.Equal(t, "replaced the\ndisk [masked: FLEET_TOKEN]", incident.ResolvedReason)
	require.Equal(t, escalation.IncidentClosed, incident.Resolution)
	require.Equal(t, chaintest.Noon, incident.ResolvedAt.UTC())
	require.Equal(t, escalation.ChainWaiting, incident.Chains[1].Status, "its chain goes on")
	chaintest.RequireGolden(t, "incident-closed.txt", []byte(atNoon(t, environ, "incidents", "show", "1").Stdout))

	again := atNoon(t, environ, "incidents", "close", "incident-1", "--actor", "ben")
	require.Equal(t, clitest.Result{Code: program.ExitFailure, Stdout: "", Stderr: "claudeops: incident-1 is resolved already (at 2026-03-01 12:00 UTC (0s ago): ada closed it: " +
		"replaced the disk [masked: FLEET_TOKEN]); nothing was changed\n"}, again)
	unchanged, err := clitest.OpenRecords(t, environ).Incident(t.Context(), "incident-1")
	require.NoError(t, err)
	require.Equal(t, incident, unchanged)
	repaired := atNoon(t, environ, "incidents", "close", "3")
	require.Equal(t, program.ExitFailure, repaired.Code)
	require.Contains(t, repaired.Stderr, "incident-3 is resolved already (at 2026-03-01 11:00 UTC (1h0m ago): chain chain-web repaired it); nothing was changed")

	busy := atNoon(t, environ, "incidents", "close", "4", "--actor", "ada")
	require.Equal(t, "incident-4 is closed (mail: mail waits).\n\n"+
		"Chain chain-mail still repairs it, and continues. It could not be told that the incident is closed. End it with: claudeops cancel chain-mail\n", busy.Stdout)
	quiet := atNoon(t, environ, "incidents", "close", "2", "-o", "json")
	var view operations.Incident
	require.NoError(t, json.Unmarshal([]byte(quiet.Stdout), &view), quiet.Stderr)
	require.Equal(t, escalation.IncidentResolved, view.State)
	require.NotEmpty(t, view.ResolvedBy, "the user")
	require.Equal(t, "No open incidents.\n", atNoon(t, environ, "incidents").Stdout)
}

// TestAcknowledgedIncident acknowledges and snoozes an incident, and withdraws that.
func TestAcknowledgedIncident(t *testing.T) {
	t.Parallel()
	environ := incidentEnvironment(t)
	does := func(args ...string) string {
		got := atNoon(t, environ, append([]string{"incidents"}, args...)...)
		require.Equal(t, program.ExitOK, got.Code, got.Stderr)
		return got.Stdout
	}
	require.Equal(t, "incident-1 is acknowledged by ada: a disk is ordered.\n", does("acknowledge", "1", "--actor", "ada", "--note", "a disk is ordered"))
	require.Contains(t, does("show", "1"), "\nKnown     acknowledged by ada: a disk is ordered\n")
	require.Contains(t, does(), "waiting, acknowledged")
	require.Equal(t, "incident-1 is snoozed by ben until 2026-03-01 20:00 UTC.\n", does("snooze", "incident-1", "--actor", "ben"))
	require.Contains(t, does(), "waiting, snoozed")
	narrow := onScreen(t, environ, 80, 30, "incidents")
	require.Equal(t, program.ExitOK, narrow.Ends())
	narrow.Sees("snoozed by ben until 2026-03-01 20:00 UTC")
	var view operations.Incident
	require.NoError(t, json.Unmarshal([]byte(does("snooze", "1", "--for", "1h", "-o", "json")), &view))
	require.Equal(t, chaintest.Noon.Add(time.Hour), view.Acknowledged.Until)
	require.NotEmpty(t, view.Acknowledged.Actor, "the user")
	require.Equal(t, "incident-1 is no longer acknowledged.\n", does("acknowledge", "1", "--withdraw"))
	require.NotContains(t, does("show", "1"), "Known")
}

// TestIncidentOfAnAcceptedState checks which chain takes care of an incident whose state a person has accepted at a
// gate.
func TestIncidentOfAnAcceptedState(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	r := clitest.Records{T: t, Store: clitest.OpenRecords(t, environ)}
	r.Ran("chain-nas", 1, chaintest.Noon.Add(-time.Hour), clitest.Finds(escalation.VerdictNeedsHuman, "", escalation.SeverityInfo, "it is loud", "nas"))
	r.Ended("chain-nas", escalation.OutcomeOverridden, chaintest.Noon)
	require.Contains(t, atNoon(t, environ, "incidents", "show", "1").Stdout,
		"\nChain     chain-nas ended because a person accepted the state; show it with: claudeops chain chain-nas\n")
	closed := atNoon(t, environ, "incidents", "close", "1", "--actor", "ada")
	require.Equal(t, "incident-1 is closed (nas: it is loud).\n", closed.Stdout, "no chain continues")
	require.NotContains(t, atNoon(t, environ, "incidents", "show", "1").Stdout, "\nChain ")
}

func TestIncidentsMisuse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args string
		want string
	}{
		"unknown command": {"sow", "`claudeops incidents` takes no arguments, and \"sow\" is one"},
		"no state":        {"--state closed", `--state is "closed"; it must be open, repairing, waiting or resolved`},
		"none wanted":     {"list --limit 0", "--limit 0 is less than one incident"},
		"nothing to show": {"show", "ID is missing: write `claudeops incidents show ID`"},
		"no incident":     {"show chain-7", `"chain-7" is no incident: write its ID, such as incident-7, or its number`},
		"zero":            {"close 0 --actor ada", `"0" is no incident`},
		"negative":        {"show -- -7", `"-7" is no incident`},
		"leading zero":    {"show 07", `"07" is no incident`},
		"odd actor":       {"close 1 --actor \u202eada", "actor has characters that cannot be printed"},
		"short snooze":    {"snooze 1 --for 1s", "--for must be between 1m and 720h"},
		"long reason":     {"close 1 --actor ada --reason " + strings.Repeat("x", 501), "--reason has 501 characters, and at most 500 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := atNoon(t, clitest.Environment(t), append([]string{"incidents"}, strings.Fields(tt.args)...)...)
			require.Equal(t, program.ExitUsage, got.Code, got.Stderr)
			require.Contains(t, got.Stderr, tt.want)
			require.Empty(t, got.Stdout)
		})
	}
}

// TestUnknownIncident names an incident that the records lack, and runs the commands on a host without records.
func TestUnknownIncident(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	for _, args := range [][]string{{"list"}, {"show", "1"}, {"close", "1", "--actor", "ada"}} {
		got := atNoon(t, environ, append([]string{"incidents"}, args...)...)
		require.Equal(t, program.ExitFailure, got.Code)
		require.Regexp(t, `^claudeops: there are no records: .*/state/.* does not exist; run this where the worker keeps them`, got.Stderr)
	}
	clitest.OpenRecords(t, environ)
	for _, args := range [][]string{{"show", "9"}, {"close", "incident-9", "--actor", "ada"}} {
		got := atNoon(t, environ, append([]string{"incidents"}, args...)...)
		require.Equal(t, clitest.Result{Code: program.ExitFailure, Stdout: "", Stderr: "claudeops: there is no incident-9; `claudeops incidents --all` lists those that are\n"}, got)
	}
}
