package escalation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const fullVerdict = `{
  "status": "escalate",
  "summary": "web answers 502",
  "services_affected": ["web"],
  "check_results": [{"service": "web", "check_type": "http", "status": "down", "error": "502", "response_time_ms": 12.5}],
  "recommended_tier": 3,
  "investigation_findings": "the upstream is gone",
  "remediation_attempted": "one restart, to no avail",
  "actions": [{"kind": "restart", "service": "web", "detail": "docker restart web", "succeeded": false}]
}`

func TestDecodeVerdict(t *testing.T) {
	t.Parallel()
	verdict, err := DecodeVerdict([]byte(fullVerdict))
	require.NoError(t, err)
	require.Equal(t, Verdict{
		Status:          VerdictEscalate,
		Summary:         "web answers 502",
		Services:        []string{"web"},
		Checks:          []CheckResult{{Service: "web", CheckType: "http", Status: CheckDown, Error: "502", ResponseTimeMS: 12.5}},
		RecommendedTier: TierFullRepair,
		Findings:        "the upstream is gone",
		Remediation:     "one restart, to no avail",
		Actions:         []Action{{Kind: ActionRestart, Service: "web", Detail: "docker restart web"}},
	}, verdict)
}

func TestDecodeVerdictTakesTheLeast(t *testing.T) {
	t.Parallel()
	for _, status := range []VerdictStatus{VerdictHealthy, VerdictResolved, VerdictNeedsHuman, VerdictFailed} {
		verdict, err := DecodeVerdict([]byte(`{"status":"` + string(status) + `","summary":"so it is","recommended_tier":0}`))
		require.NoError(t, err)
		require.Equal(t, Verdict{Status: status, Summary: "so it is"}, verdict)
	}
}

// actionOn returns a verdict with one restart of service.
func actionOn(service string) string {
	return `{"status":"healthy","summary":"x","actions":[{"kind":"restart","service":"` + service + `","succeeded":true}]}`
}

func TestDecodeVerdictSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		raw  string
		want []string
	}{
		"nothing":             {``, []string{"EOF"}},
		"no JSON":             {`all is well`, []string{"invalid character"}},
		"cut off":             {`{"status":"healthy"`, []string{"unexpected EOF"}},
		"null":                {`null`, []string{"status is", "summary is empty"}},
		"a list":              {`[]`, []string{"cannot unmarshal array"}},
		"two objects":         {`{"status":"healthy","summary":"x"} {}`, []string{"something follows"}},
		"text behind":         {`{"status":"healthy","summary":"x"} ok`, []string{"something follows"}},
		"unknown field":       {`{"status":"healthy","summary":"x","mood":"good"}`, []string{`unknown field "mood"`}},
		"unknown status":      {`{"status":"fine","summary":"x"}`, []string{`status is "fine", and must be healthy`}},
		"blank summary":       {`{"status":"healthy","summary":" \n"}`, []string{"summary is empty"}},
		"escalate nothing":    {`{"status":"escalate","summary":"x"}`, []string{"status escalate needs at least one service"}},
		"blank service":       {`{"status":"escalate","summary":"x","services_affected":["web"," "]}`, []string{"services_affected: service 2 has a blank name"}},
		"tier 4":              {`{"status":"healthy","summary":"x","recommended_tier":4}`, []string{"recommended_tier is 4"}},
		"tier -1":             {`{"status":"healthy","summary":"x","recommended_tier":-1}`, []string{"recommended_tier is -1"}},
		"tier as text":        {`{"status":"healthy","summary":"x","recommended_tier":"2"}`, []string{"cannot unmarshal string"}},
		"bad check":           {`{"status":"healthy","summary":"x","check_results":[{"status":"up","response_time_ms":-1}]}`, []string{"check_results[0].service is empty", "check_results[0].check_type is empty", `check_results[0].status is "up"`, "response_time_ms is negative"}},
		"bad action":          {`{"status":"healthy","summary":"x","actions":[{"kind":"reboot"}]}`, []string{`actions[0].kind is "reboot"`, "actions[0].service has a blank name"}},
		"long action":         {actionOn(strings.Repeat("a", MaxServiceName+1)), []string{"actions[0].service has a name of more than 100 characters"}},
		"unprintable action":  {actionOn(`web\u0000`), []string{"actions[0].service has a name with characters that cannot be printed"}},
		"everything at once":  {`{"status":"","summary":"","recommended_tier":9}`, []string{"status is", "summary is empty", "recommended_tier is 9"}},
		"larger than allowed": {`{"status":"healthy","summary":"` + strings.Repeat("x", maxVerdictBytes) + `"}`, []string{"at most 65536"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, err := DecodeVerdict([]byte(test.raw))
			require.ErrorIs(t, err, ErrInvalidVerdict)
			require.Zero(t, verdict)
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// FuzzDecodeVerdict checks the promises to callers: no panic, accepted verdicts are valid, and encoding and
// decoding them again changes nothing.
func FuzzDecodeVerdict(f *testing.F) {
	for _, seed := range []string{
		fullVerdict, `{}`, `null`, `{"status":"healthy","summary":"x"}`,
		`{"status":"escalate","summary":"x","services_affected":[]}`,
		`{"STATUS":"healthy","summary":"\ud800"}`,
		`{"status":"healthy","summary":"x","check_results":[{"service":"a","check_type":"b","status":"down","response_time_ms":1e308}]}`,
		`{"status":"healthy","summary":"x","summary":""}`, "\ufeff{}", `{"status":"healthy","summary":"x"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		verdict, err := DecodeVerdict(raw)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalidVerdict)
			require.Zero(t, verdict)
			return
		}
		require.Empty(t, verdict.problems())
		written, err := json.Marshal(verdict)
		require.NoError(t, err)
		again, err := DecodeVerdict(written)
		require.NoError(t, err)
		rewritten, err := json.Marshal(again)
		require.NoError(t, err)
		require.JSONEq(t, string(written), string(rewritten))
	})
}
