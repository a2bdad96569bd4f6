package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"github.com/claudeops/claudeops/internal/chaintest"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/workflows"
)

// atNoon runs the program with a clock that shows chaintest.Noon.
func atNoon(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), &console.Console{
		Process: program.Process{Args: args, Environ: environ, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr},
		Clock:   chaintest.Clock, Patience: nobodysPatience,
	})
	return result{code, stdout.String(), stderr.String()}
}

// incidentRecords writes incidents to the records by recording sessions of chains.
type incidentRecords struct {
	t *testing.T
	s *store.Store
}

// ran records a session with this verdict that ended at the time at.
func (r incidentRecords) ran(chainID string, tier escalation.Tier, at time.Time, verdict escalation.Verdict) {
	r.t.Helper()
	session := escalation.Session{
		ChainID: chainID, SessionID: chainID + at.String(), Tier: tier, Model: "haiku", StartedAt: at.Add(-time.Minute), Purpose: escalation.PurposeTier,
	}
	_, err := r.s.OpenSession(r.t.Context(), session, escalation.AdmissionRequest{Services: verdict.Services},
		escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
	require.NoError(r.t, err)
	report := escalation.Report{Status: escalation.SessionCompleted, CostUSD: 0.25, Attempts: 1, Verdict: &verdict}
	require.NoError(r.t, r.s.CloseSession(r.t.Context(), session.SessionID, report, at))
}

func (r incidentRecords) does(chainID string, progress escalation.ChainProgress) {
	r.t.Helper()
	require.NoError(r.t, r.s.RecordProgress(r.t.Context(), escalation.ChainRun{ChainID: chainID}, progress))
	require.NoError(r.t, r.s.ReleaseServices(r.t.Context(), chainID))
}

func (r incidentRecords) ended(chainID string, outcome escalation.Outcome, at time.Time) {
	r.t.Helper()
	r.does(chainID, escalation.ChainProgress{Status: escalation.ChainEnded, Outcome: outcome, At: at})
}

// finds returns a verdict that finds one fault.
func finds(status escalation.VerdictStatus, kind string, severity escalation.Severity, summary string, services ...string) escalation.Verdict {
	verdict := escalation.Verdict{Status: status, Kind: kind, Summary: summary, Services: services}
	if severity != "" {
		verdict.Issues = []escalation.Issue{{Services: services, Kind: kind, Severity: severity, Summary: summary}}
	}
	return verdict
}

// recordIncidents writes four incidents: 1 waits at the gate of its second chain, 2 is open and critical, 3 was repaired, 4 is
// being repaired. Texts of agents contain secrets and escapes.
func recordIncidents(t *testing.T, environ []string) {
	t.Helper()
	r := incidentRecords{t, openRecords(t, environ)}
	ago := func(hours int) time.Time { return chaintest.Noon.Add(-time.Duration(hours) * time.Hour) }
	down := finds(escalation.VerdictEscalate, "down", escalation.SeverityWarning, "it answers 502 \x1b]0;owned\x07\nagain", "jellyfin")
	r.ran("chain-first", 1, ago(76), down)
	resolved := finds(escalation.VerdictResolved, "", "", "it plays again", "jellyfin")
	resolved.Remediation = "restarted it with " + givenSecrets[1]
	r.ran("chain-first", 2, ago(75), resolved)
	r.ended("chain-first", escalation.OutcomeResolved, ago(75))
	r.ran("chain-second", 1, ago(5), down)
	failed := finds(escalation.VerdictNeedsHuman, "", "", "it answers 502 still", "jellyfin")
	failed.Remediation = "restarted it twice\x1b[2J"
	r.ran("chain-second", 2, ago(4), failed)
	r.does("chain-second", escalation.ChainProgress{
		Status: escalation.ChainWaiting, Rule: escalation.RuleVerdict, Reason: "tier 2 asks for a person \x1b[31m", At: ago(4),
		Until: chaintest.Noon.Add(68 * time.Hour),
	})
	r.ran("chain-disk", 1, ago(3), finds(escalation.VerdictEscalate, "disk_full", escalation.SeverityCritical, "the disk is full "+givenSecrets[1], "The NAS"))
	r.ended("chain-disk", escalation.OutcomeAborted, ago(3))
	r.ran("chain-web", 1, ago(2), finds(escalation.VerdictEscalate, "", escalation.SeverityInfo, "slow", "web"))
	r.ran("chain-web", 2, ago(1), finds(escalation.VerdictResolved, "", "", "fast again", "web"))
	r.ended("chain-web", escalation.OutcomeResolved, ago(1))
	r.ran("chain-mail", 1, ago(1), finds(escalation.VerdictEscalate, "queue", escalation.SeverityWarning, "mail waits", "mail"))
	r.does("chain-mail", escalation.ChainProgress{Status: escalation.ChainRepairing, At: ago(1)})
}

// incidentEnvironment returns an environment without Temporal, whose records have the incidents of recordIncidents.
func incidentEnvironment(t *testing.T) []string {
	t.Helper()
	environ := bareEnvironment(t, "FLEET_TOKEN="+givenSecrets[1])
	recordIncidents(t, environ)
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
		require.Equal(t, program.ExitOK, shown.code, shown.stderr)
		require.Empty(t, shown.stderr)
		require.NotContains(t, shown.stdout, "\x1b")
		requireNoSecret(t, shown.stdout)
		chaintest.RequireGolden(t, file, []byte(shown.stdout))
	}
	require.Equal(t, atNoon(t, environ, "incidents").stdout, atNoon(t, environ, "incidents", "list").stdout)
	narrow := onScreen(t, environ, 60, 24, "incidents", "--all")
	require.Equal(t, program.ExitOK, narrow.ends())
	narrow.is("incidents-60")
	require.NotContains(t, narrow.sent(), "\x1b]0;")
}

func TestIncidentsAsJSON(t *testing.T) {
	t.Parallel()
	environ := incidentEnvironment(t)
	shown := atNoon(t, environ, "incidents", "show", "incident-1", "-o", "json")
	require.Equal(t, program.ExitOK, shown.code, shown.stderr)
	requireNoSecret(t, shown.stdout)
	var view operations.Incident
	require.NoError(t, json.Unmarshal([]byte(shown.stdout), &view))
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
	require.NoError(t, json.Unmarshal([]byte(listed.stdout), &rows))
	require.Len(t, rows, 1)
	require.Equal(t, "incident-2", rows[0]["id"])
	require.Equal(t, []any{"The NAS"}, rows[0]["services"])
	require.NotContains(t, rows[0], "handler", "its chain has ended")
	requireNoSecret(t, listed.stdout)
	require.Contains(t, atNoon(t, environ, "incidents", "--limit", "1").stdout, "\n2 more; see them with --limit\n")
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
		require.Equal(t, program.ExitOK, got.code, got.stderr)
		var rows []operations.Incident
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &rows))
		ids := []string{}
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		require.Equal(t, want, ids, args)
	}
	require.Equal(t, "[]\n", atNoon(t, environ, "incidents", "--service", "nobody", "-o", "json").stdout)
	require.Equal(t, "No incidents.\n", atNoon(t, environ, "incidents", "--service", "nobody").stdout)
}

// TestIncidentsOfAnAlias finds an incident by another name of its service.
func TestIncidentsOfAnAlias(t *testing.T) {
	t.Parallel()
	environ := append(bareEnvironment(t), "CLAUDEOPS_SERVICES_FILE="+listedNAS(t))
	require.NoError(t, openRecords(t, environ).Close())
	require.Equal(t, "No open incidents.\n", atNoon(t, environ, "incidents").stdout)
	incidentRecords{t, openRecords(t, environ)}.ran("chain-nas", 1, chaintest.Noon,
		finds(escalation.VerdictEscalate, "", escalation.SeverityWarning, "it is full", "nas"))
	require.Contains(t, atNoon(t, environ, "incidents", "--service", "The  Nas").stdout, "incident-1")
}

func TestCloseIncident(t *testing.T) {
	t.Parallel()
	environ := incidentEnvironment(t)
	closed := atNoon(t, environ, "incidents", "close", "1", "--actor", "ada", "--reason", "replaced the\ndisk "+givenSecrets[1])
	require.Equal(t, program.ExitOK, closed.code, closed.stderr)
	require.Contains(t, closed.stderr, console.MaskedHint)
	require.Contains(t, closed.stderr, "starter: the chains of incident-1 could not be told: connect to Temporal at 127.0.0.1:1: ")
	chaintest.RequireGolden(t, "incident-close-waiting.txt", []byte(closed.stdout))
	incident, err := openRecords(t, environ).Incident(t.Context(), "incident-1")
	require.NoError(t, err)
	require.Equal(t, "ada", incident.ResolvedBy)
	require.Equal(t, "replaced the\ndisk [masked: FLEET_TOKEN]", incident.ResolvedReason)
	require.Equal(t, escalation.IncidentClosed, incident.Resolution)
	require.Equal(t, chaintest.Noon, incident.ResolvedAt.UTC())
	require.Equal(t, escalation.ChainWaiting, incident.Chains[1].Status, "its chain goes on")
	chaintest.RequireGolden(t, "incident-closed.txt", []byte(atNoon(t, environ, "incidents", "show", "1").stdout))

	again := atNoon(t, environ, "incidents", "close", "incident-1", "--actor", "ben")
	require.Equal(t, result{program.ExitFailure, "", "starter: incident-1 is resolved already (at 2026-03-01 12:00 UTC (0s ago): ada closed it: " +
		"replaced the disk [masked: FLEET_TOKEN]); nothing was changed\n"}, again)
	unchanged, err := openRecords(t, environ).Incident(t.Context(), "incident-1")
	require.NoError(t, err)
	require.Equal(t, incident, unchanged)
	repaired := atNoon(t, environ, "incidents", "close", "3")
	require.Equal(t, program.ExitFailure, repaired.code)
	require.Contains(t, repaired.stderr, "incident-3 is resolved already (at 2026-03-01 11:00 UTC (1h0m ago): chain chain-web repaired it); nothing was changed")

	busy := atNoon(t, environ, "incidents", "close", "4", "--actor", "ada")
	require.Equal(t, "incident-4 is closed (mail: mail waits).\n\n"+
		"Chain chain-mail still repairs it, and continues. It could not be told that the incident is closed. End it with: starter cancel chain-mail\n", busy.stdout)
	quiet := atNoon(t, environ, "incidents", "close", "2", "-o", "json")
	var view operations.Incident
	require.NoError(t, json.Unmarshal([]byte(quiet.stdout), &view), quiet.stderr)
	require.Equal(t, escalation.IncidentResolved, view.State)
	require.NotEmpty(t, view.ResolvedBy, "the user")
	require.Equal(t, "No open incidents.\n", atNoon(t, environ, "incidents").stdout)
}

// TestCloseTellsChains checks that a waiting chain is informed who closed its incident. It also checks that the output names a
// chain that has ended.
func TestCloseTellsChains(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	recordIncidents(t, s.environ)
	s.plays(t, "chain-second", scene{}, scene{})
	closed := atNoon(t, s.environ, "incidents", "close", "1", "--actor", "ada", "--reason", "replaced the disk")
	require.Equal(t, program.ExitOK, closed.code, closed.stderr)
	require.Empty(t, closed.stderr)
	require.Contains(t, closed.stdout, "\nIt was told that the incident is closed.\n")
	var signal workflows.IncidentSignal
	history := s.client.GetWorkflowHistory(t.Context(), "chain-second", "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		if signalled := event.GetWorkflowExecutionSignaledEventAttributes(); signalled != nil {
			require.Equal(t, workflows.IncidentSignalName, signalled.GetSignalName())
			require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(signalled.GetInput(), &signal))
		}
	}
	require.Equal(t, workflows.IncidentSignal{
		IncidentID: "incident-1", Status: escalation.IncidentGone, Note: "replaced the disk", Actor: "ada",
	}, signal)

	gone := atNoon(t, s.environ, "incidents", "close", "4", "--actor", "ada", "-o", "json")
	require.Equal(t, program.ExitOK, gone.code)
	require.Equal(t, "starter: chain chain-mail could not be told: no such chain\n", gone.stderr)
	require.NotContains(t, gone.stdout, `"told"`)
}

// TestIncidentOfAnAcceptedState checks which chain takes care of an incident whose state a person has accepted at a gate.
func TestIncidentOfAnAcceptedState(t *testing.T) {
	t.Parallel()
	environ := bareEnvironment(t)
	r := incidentRecords{t, openRecords(t, environ)}
	r.ran("chain-nas", 1, chaintest.Noon.Add(-time.Hour), finds(escalation.VerdictNeedsHuman, "", escalation.SeverityInfo, "it is loud", "nas"))
	r.ended("chain-nas", escalation.OutcomeOverridden, chaintest.Noon)
	require.Contains(t, atNoon(t, environ, "incidents", "show", "1").stdout,
		"\nChain     chain-nas ended because a person accepted the state; show it with: starter chain chain-nas\n")
	closed := atNoon(t, environ, "incidents", "close", "1", "--actor", "ada")
	require.Equal(t, "incident-1 is closed (nas: it is loud).\n", closed.stdout, "no chain continues")
	require.NotContains(t, atNoon(t, environ, "incidents", "show", "1").stdout, "\nChain ")
}

func TestIncidentsMisuse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args string
		want string
	}{
		"unknown command": {"sow", "`starter incidents` takes no arguments, and \"sow\" is one"},
		"no state":        {"--state closed", `--state is "closed"; it must be open, repairing, waiting or resolved`},
		"none wanted":     {"list --limit 0", "--limit 0 is less than one incident"},
		"nothing to show": {"show", "ID is missing: write `starter incidents show ID`"},
		"no incident":     {"show chain-7", `"chain-7" is no incident: write its ID, such as incident-7, or its number`},
		"zero":            {"close 0 --actor ada", `"0" is no incident`},
		"negative":        {"show -- -7", `"-7" is no incident`},
		"leading zero":    {"show 07", `"07" is no incident`},
		"odd actor":       {"close 1 --actor \u202eada", "actor has characters that cannot be printed"},
		"long reason":     {"close 1 --actor ada --reason " + strings.Repeat("x", 501), "--reason has 501 characters, and at most 500 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := atNoon(t, bareEnvironment(t), append([]string{"incidents"}, strings.Fields(tt.args)...)...)
			require.Equal(t, program.ExitUsage, got.code, got.stderr)
			require.Contains(t, got.stderr, tt.want)
			require.Empty(t, got.stdout)
		})
	}
}

// TestUnknownIncident names an incident that the records lack, and runs the commands on a host without records.
func TestUnknownIncident(t *testing.T) {
	t.Parallel()
	environ := bareEnvironment(t)
	for _, args := range [][]string{{"list"}, {"show", "1"}, {"close", "1", "--actor", "ada"}} {
		got := atNoon(t, environ, append([]string{"incidents"}, args...)...)
		require.Equal(t, program.ExitFailure, got.code)
		require.Regexp(t, `^starter: there are no records: .*/state/.* does not exist; run this where the worker keeps them`, got.stderr)
	}
	openRecords(t, environ)
	for _, args := range [][]string{{"show", "9"}, {"close", "incident-9", "--actor", "ada"}} {
		got := atNoon(t, environ, append([]string{"incidents"}, args...)...)
		require.Equal(t, result{program.ExitFailure, "", "starter: there is no incident-9; `starter incidents --all` lists those that are\n"}, got)
	}
}
