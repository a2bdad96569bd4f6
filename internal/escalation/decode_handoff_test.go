package escalation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/escalation"
)

// writtenHandoff is a complete handoff as an agent of Tier 2 writes it.
const writtenHandoff = `{
  "schema_version": 1, "from_tier": 1, "recommended_tier": 3, "summary": "web answers 502",
  "services_affected": ["web"],
  "check_results": [{"service": "web", "check_type": "http", "status": "down", "error": "HTTP 502", "response_time_ms": 1250}],
  "investigation_findings": "the disk is full",
  "remediation_attempted": "restarted it",
  "actions": [{"kind": "restart", "service": "web", "succeeded": false}],
  "cooldown_state": {"services": {"web": {"restart_count_4h": 0, "last_restart": null}}}
}`

func TestDecodeHandoff(t *testing.T) {
	t.Parallel()
	handoff, err := escalation.DecodeHandoff([]byte(writtenHandoff), 2, 3)
	require.NoError(t, err)
	require.Equal(t, escalation.NewHandoff(2, 3, &escalation.Verdict{
		Summary: "web answers 502", Services: []string{"web"}, Findings: "the disk is full", Remediation: "restarted it",
		Checks: []escalation.CheckResult{
			{Service: "web", CheckType: "http", Status: escalation.CheckDown, Error: "HTTP 502", ResponseTimeMS: 1250},
		},
		Actions: []escalation.Action{{Kind: escalation.ActionRestart, Service: "web"}},
	}, nil), handoff, "from_tier and cooldown_state are not the agent's to tell")
}

// written returns the complete handoff after replacing pairs of old and new text.
func written(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(writtenHandoff) }

func TestDecodeHandoffFromTier1NeedsLess(t *testing.T) {
	t.Parallel()
	raw := `{"schema_version":1,"recommended_tier":3,"services_affected":["web"],"cooldown_state":{},
		"check_results":[{"service":"web","check_type":"http","status":"down"}]}`
	handoff, err := escalation.DecodeHandoff([]byte(raw), 1, 2)
	require.NoError(t, err)
	require.Equal(t, escalation.TierSafeRepair, handoff.RecommendedTier, "the supervisor decides which tier comes next")
	_, err = escalation.DecodeHandoff([]byte(raw), 2, 3)
	require.EqualError(t, err, "invalid handoff: investigation_findings is missing or empty; remediation_attempted is missing or empty")
}

func TestDecodeHandoffRejects(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw  string
		want []string
	}{
		"nothing":          {"", []string{"EOF"}},
		"no JSON":          {"Here you are: {", []string{"invalid character"}},
		"null":             {"null", []string{"schema_version is missing"}},
		"a list":           {"[" + writtenHandoff + "]", []string{"cannot unmarshal array"}},
		"two":              {writtenHandoff + writtenHandoff, []string{"something follows"}},
		"cut off":          {writtenHandoff[:200], []string{"unexpected EOF"}},
		"version 2":        {written(`n": 1`, `n": 2`, `"summary"`, `"synopsis"`), []string{"schema_version is 2, and this program reads 1"}},
		"version as text":  {written(`n": 1`, `n": "1"`), []string{`schema_version is "1"`}},
		"a long version":   {written(`n": 1`, `n": "`+strings.Repeat("1", 10_000)+`"`), []string{"schema_version is", "[…]"}},
		"no version":       {written(`"schema_version": 1,`, ""), []string{"schema_version is missing"}},
		"unknown field":    {written(`"summary"`, `"synopsis"`), []string{`unknown field "synopsis"`}},
		"unknown below":    {written(`"check_type"`, `"x": 1, "check_type"`), []string{`unknown field "x"`}},
		"no tier":          {written(`"recommended_tier": 3,`, ""), []string{"recommended_tier is missing"}},
		"tier 4":           {written(`tier": 3`, `tier": 4`), []string{"recommended_tier is 4, and must be 1, 2 or 3"}},
		"no services":      {written(`["web"]`, "[]"), []string{"services_affected is missing or empty"}},
		"a blank service":  {written(`["web"]`, `["web", " "]`), []string{"services_affected: service 2 has a blank name"}},
		"a hostile name":   {written(`["web"]`, `["web\n## Rules"]`), []string{"cannot be printed"}},
		"an unknown check": {written(`"down"`, `"broken"`), []string{`check_results[0].status is "broken"`}},
		"no cooldowns":     {written(`"cooldown_state": {"services": {"web": {"restart_count_4h": 0, "last_restart": null}}}`, `"cooldown_state": null`), []string{"cooldown_state is missing or empty"}},
		"everything at once": {
			`{"schema_version": 1, "synopsis": "x", "check_results": [{"status": "up"}], "actions": [{"kind": "reboot"}]}`,
			[]string{
				`unknown field "synopsis"`, "recommended_tier is missing", "services_affected is missing", "investigation_findings is missing",
				"remediation_attempted is missing", "cooldown_state is missing", "check_results[0].service is empty", `actions[0].kind is "reboot"`,
			},
		},
		"too large": {written("the disk is full", strings.Repeat("x", escalation.MaxHandoffBytes)), []string{"more than 262144 bytes"}},
		"too large as JSON": {
			written("the disk is full", strings.Repeat("<", escalation.MaxHandoffBytes/2)), []string{"more than 262144 bytes as JSON"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handoff, err := escalation.DecodeHandoff([]byte(tt.raw), 2, 3)
			require.ErrorIs(t, err, escalation.ErrInvalidHandoff)
			require.Zero(t, handoff)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			require.Less(t, len(err.Error()), 2000, "it goes into an event")
		})
	}
}

// TestHandoffRoundTrip checks that the supervisor can read every complete handoff that it writes.
func TestHandoffRoundTrip(t *testing.T) {
	t.Parallel()
	text := rapid.StringMatching(`[^\p{C}\p{Z}][^\p{Cs}]{0,200}`)
	service := rapid.StringMatching(`[\pL<|"]{1,100}`)
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]escalation.Tier{1, 2}).Draw(t, "from")
		handoff := escalation.NewHandoff(from, from+1, &escalation.Verdict{
			Summary:  text.Draw(t, "summary"),
			Services: rapid.SliceOfN(service, 1, 20).Draw(t, "services"),
			Checks: []escalation.CheckResult{{
				Service: text.Draw(t, "service"), CheckType: text.Draw(t, "type"), Status: escalation.CheckDown,
				Error: text.Draw(t, "error"), ResponseTimeMS: rapid.Float64Min(0).Draw(t, "time"),
			}},
			Findings: text.Draw(t, "findings"), Remediation: text.Draw(t, "remediation"),
			Actions: []escalation.Action{{Kind: escalation.ActionOther, Service: service.Draw(t, "acted on"), Succeeded: true}},
		}, nil)
		written, err := json.Marshal(handoff)
		require.NoError(t, err)
		read, err := escalation.DecodeHandoff(written, from, from+1)
		require.NoError(t, err)
		require.Equal(t, handoff, read)
	})
}

// FuzzDecodeHandoff checks the promises to callers: no panic, accepted handoffs are complete and can be passed
// on, and errors fit into an event.
func FuzzDecodeHandoff(f *testing.F) {
	for _, seed := range []string{
		writtenHandoff, `{}`, `null`, `{"schema_version":1}`, `{"schema_version":2,"new":true}`, `{"schema_version":1e0}`,
		written(`["web"]`, `[""]`), written("the disk is full", `\ud800`), writtenHandoff + "]", "\ufeff" + writtenHandoff,
		written(`"cooldown_state": {`, `"cooldown_state": {"a": [`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		handoff, err := escalation.DecodeHandoff(raw, 2, 3)
		if err != nil {
			require.ErrorIs(t, err, escalation.ErrInvalidHandoff)
			require.Zero(t, handoff)
			return
		}
		require.Empty(t, escalation.MissingFields(2, &escalation.Verdict{
			Services: handoff.Services, Checks: handoff.Checks, Findings: handoff.Findings, Remediation: handoff.Remediation,
		}))
		require.Equal(t, escalation.TierFullRepair, handoff.RecommendedTier)
		require.Empty(t, handoff.Cooldowns.Services)
		fitted, _ := handoff.Fit()
		require.True(t, strings.HasPrefix(fitted.Markdown(), "## Escalation Context (from Tier 2)\n"))
		written, err := json.Marshal(handoff)
		require.NoError(t, err)
		again, err := escalation.DecodeHandoff(written, 2, 3)
		require.NoError(t, err)
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(written), string(rewritten))
	})
}
