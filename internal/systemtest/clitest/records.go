package clitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// Records writes incidents to the records by recording sessions of chains.
type Records struct {
	T     *testing.T
	Store *store.Store
}

// Ran records a session with this verdict that ended at the time at.
func (r Records) Ran(chainID string, tier escalation.Tier, at time.Time, verdict escalation.Verdict) {
	r.T.Helper()
	session := escalation.Session{
		ChainID: chainID, SessionID: chainID + at.String(), Tier: tier, Model: "haiku",
		StartedAt: at.Add(-time.Minute), Purpose: escalation.PurposeTier,
	}
	_, err := r.Store.OpenSession(r.T.Context(), session, escalation.AdmissionRequest{Services: verdict.Services},
		escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
	require.NoError(r.T, err)
	report := escalation.Report{
		Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 0.25}, Attempts: 1,
		Verdict: &verdict,
	}
	require.NoError(r.T, r.Store.CloseSession(r.T.Context(), session.SessionID, report, at))
}

// Does records what a chain does about its incidents.
func (r Records) Does(chainID string, progress escalation.ChainProgress) {
	r.T.Helper()
	require.NoError(r.T, r.Store.RecordProgress(r.T.Context(), escalation.ChainRun{ChainID: chainID}, progress))
	require.NoError(r.T, r.Store.ReleaseServices(r.T.Context(), chainID))
}

// Ended records how a chain ended.
func (r Records) Ended(chainID string, outcome escalation.Outcome, at time.Time) {
	r.T.Helper()
	r.Does(chainID, escalation.ChainProgress{Status: escalation.ChainEnded, Outcome: outcome, At: at})
}

// Finds returns a verdict that finds one fault.
func Finds(
	status escalation.VerdictStatus, kind string, severity escalation.Severity, summary string, services ...string,
) escalation.Verdict {
	verdict := escalation.Verdict{Status: status, Kind: kind, Summary: summary, Services: services}
	if severity != "" {
		verdict.Issues = []escalation.Issue{{Services: services, Kind: kind, Severity: severity, Summary: summary}}
	}
	return verdict
}

// RecordIncidents writes four incidents: 1 waits at the gate of its second chain, 2 is open and critical, 3 was
// repaired, 4 is being repaired. Texts of agents contain secrets and escapes.
func RecordIncidents(t *testing.T, environ []string) {
	t.Helper()
	r := Records{t, OpenRecords(t, environ)}
	ago := func(hours int) time.Time { return chaintest.Noon.Add(-time.Duration(hours) * time.Hour) }
	down := Finds(escalation.VerdictEscalate, "down", escalation.SeverityWarning,
		"it answers 502 \x1b]0;owned\x07\nagain", "jellyfin")
	r.Ran("chain-first", 1, ago(76), down)
	resolved := Finds(escalation.VerdictResolved, "", "", "it plays again", "jellyfin")
	resolved.Remediation = "restarted it with " + Secrets[1]
	r.Ran("chain-first", 2, ago(75), resolved)
	r.Ended("chain-first", escalation.OutcomeResolved, ago(75))
	r.Ran("chain-second", 1, ago(5), down)
	failed := Finds(escalation.VerdictNeedsHuman, "", "", "it answers 502 still", "jellyfin")
	failed.Remediation = "restarted it twice\x1b[2J"
	r.Ran("chain-second", 2, ago(4), failed)
	r.Does("chain-second", escalation.ChainProgress{
		Status: escalation.ChainWaiting, Rule: escalation.RuleVerdict, Reason: "tier 2 asks for a person \x1b[31m",
		At: ago(4), Until: chaintest.Noon.Add(68 * time.Hour),
	})
	r.Ran("chain-disk", 1, ago(3),
		Finds(escalation.VerdictEscalate, "disk_full", escalation.SeverityCritical, "the disk is full "+Secrets[1],
			"The NAS"))
	r.Ended("chain-disk", escalation.OutcomeAborted, ago(3))
	r.Ran("chain-web", 1, ago(2), Finds(escalation.VerdictEscalate, "", escalation.SeverityInfo, "slow", "web"))
	r.Ran("chain-web", 2, ago(1), Finds(escalation.VerdictResolved, "", "", "fast again", "web"))
	r.Ended("chain-web", escalation.OutcomeResolved, ago(1))
	r.Ran("chain-mail", 1, ago(1), Finds(escalation.VerdictEscalate, "queue", escalation.SeverityWarning, "mail waits",
		"mail"))
	r.Does("chain-mail", escalation.ChainProgress{Status: escalation.ChainRepairing, At: ago(1)})
}

// Secrets are secrets that a person passes to claudeops: a token, and the value of a secret variable.
var Secrets = []string{"ghp_" + strings.Repeat("q9W8e7R6t5Y4", 3), "fleet-value-4711"}

// RequireNoSecret checks that text contains none of the Secrets.
func RequireNoSecret(t *testing.T, text string) {
	t.Helper()
	for _, secret := range Secrets {
		require.NotContains(t, text, secret)
	}
}

// OpenRecords opens the records of environ for a test.
func OpenRecords(t *testing.T, environ []string) *store.Store {
	t.Helper()
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	return records
}

// ServicesFile writes a services file with an alias of the service nas, and returns its path.
func ServicesFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "services.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nservices: [{name: nas, aliases: [the nas]}]\n"), 0o600))
	return file
}
