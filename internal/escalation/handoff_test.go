package escalation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestHandoffAfterASessionThatWasCutOff(t *testing.T) {
	t.Parallel()
	cutOff := escalation.Session{Tier: 2, SessionID: "4f2b7c1e", Report: escalation.Report{Turns: 7, Attempts: 2}}
	handoff := escalation.NewHandoff(1, 2, &escalation.Verdict{Summary: "502", Remediation: "nothing yet"}).After(cutOff)
	require.Equal(t, "502", handoff.Summary)
	text := handoff.Markdown()
	require.Contains(t, text, "### Already tried\n\nnothing yet\n\nAn earlier session of tier 2, 4f2b7c1e,")
	require.Contains(t, text, "after 7 turns without a verdict")
	require.Contains(t, text, "check that before anything that changes something is repeated")
}

func TestHandoffMarkdown(t *testing.T) {
	t.Parallel()
	handoff := escalation.NewHandoff(2, 3, &escalation.Verdict{
		Status:   escalation.VerdictEscalate,
		Summary:  "The proxy answers 502.",
		Services: []string{"jellyfin"},
		Checks: []escalation.CheckResult{
			{Service: "jellyfin", CheckType: "http", Status: escalation.CheckDown, Error: "502 | bad\ngateway"},
		},
		Findings:    "The database is locked.",
		Remediation: "Restarted it, no change.",
		Actions:     []escalation.Action{{Kind: escalation.ActionRestart, Service: "jellyfin", Detail: "docker restart"}},
	})
	require.Equal(t, escalation.HandoffVersion, handoff.SchemaVersion)
	require.Equal(t, strings.TrimLeft(`
## Handoff from tier 2

The proxy answers 502.

### Affected services

- jellyfin

### Checks

| Service | Check | Status | Error |
|---|---|---|---|
| jellyfin | http | down | 502 \| bad gateway |

### Findings

The database is locked.

### Already tried

Restarted it, no change.

### Changes made

- restart of jellyfin failed: docker restart
`, "\n"), handoff.Markdown())
}

func TestHandoffWithoutVerdict(t *testing.T) {
	t.Parallel()
	require.Equal(t, "## Handoff from tier 1\n\nThe tier before left no verdict.\n",
		escalation.NewHandoff(1, 2, nil).Markdown())
}
