package claude

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]string{
		"2.1.329 (Claude Code)\n":                  "2.1.329",
		"claude v10.0.1-beta.2":                    "",
		"a warning first\n2.1.197 (Claude Code)\n": "2.1.197",
		"Claude Code":                              "",
		"":                                         "",
		"99999999.1.1":                             "",
	} {
		got, err := parseVersion(printed)
		if want == "" {
			require.Error(t, err, printed)
			continue
		}
		require.NoError(t, err, printed)
		require.Equal(t, want, got.String())
	}
}

func TestDialectFor(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"1.0.0":   "2.1.197",
		"2.1.197": "2.1.197",
		"2.1.328": "2.1.197",
		"2.1.329": "2.1.329",
		"2.1.330": "2.1.329",
		"3.0.0":   "2.1.329",
	} {
		number, err := parseVersion(asked)
		require.NoError(t, err)
		d := dialectFor(number)
		require.Equal(t, want, d.measured.String(), asked)
		if asked == want {
			require.Empty(t, d.warning(number))
		} else {
			require.Contains(t, d.warning(number), asked)
		}
	}
}

func TestOwnCost(t *testing.T) {
	t.Parallel()
	since := func(usd dollars) map[string]modelUsage { return map[string]modelUsage{"m": {CostUSD: usd}} }
	for name, tc := range map[string]struct {
		carries bool
		results []resultLine
		want    float64
		known   bool
	}{
		"no result":                              {},
		"a running total of the process":         {results: []resultLine{{TotalCostUSD: 1}, {TotalCostUSD: 3}}, want: 3, known: true},
		"a total that goes on from the parent's": {carries: true, results: []resultLine{{TotalCostUSD: 9, SinceLastResult: since(1)}, {TotalCostUSD: 11, SinceLastResult: since(2)}}, want: 3, known: true},
		"a report that an untested version adds": {results: []resultLine{{TotalCostUSD: 9, SinceLastResult: since(1)}}, want: 1, known: true},
		"a report that is missing":               {carries: true, results: []resultLine{{TotalCostUSD: 9}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, known := dialect{carriesCost: tc.carries}.ownCost(tc.results)
			require.Equal(t, tc.known, known)
			require.InDelta(t, tc.want, got, 1e-12)
		})
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	million := usage{Input: 1_000_000}
	for model, want := range map[string]float64{
		"claude-haiku-4-5-20251001":                  1,
		"claude-haiku-5-5":                           0.5, // a long prompt
		"claude-sonnet-5":                            3,
		"claude-sonnet-5-5":                          2,
		"us.anthropic.claude-opus-4-8-20260101-v1:0": 5,
		"claude-opus-5-5":                            4,
		"someone-elses-model":                        5,
	} {
		require.InDelta(t, want, estimate(model, million), 1e-9, model)
	}
	oneHour := usage{CacheCreation: 1_000_000}
	oneHour.Creation.OneHour = 1_000_000
	require.InDelta(t, 6, estimate("claude-sonnet-5", oneHour), 1e-9)
	require.InDelta(t, 3.75, estimate("claude-sonnet-5", usage{CacheCreation: 1_000_000}), 1e-9)
}

// TestATotalAloneIsTheOwnCostOnlyWhereItDoesNotGoOn covers a result that lost its own report.
func TestATotalAloneIsTheOwnCostOnlyWhereItDoesNotGoOn(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]bool{"2.1.197": true, "2.1.329": false} {
		_, known := cliOf(asked).dialect.ownCost([]resultLine{{TotalCostUSD: 1}})
		require.Equal(t, want, known, asked)
	}
}
