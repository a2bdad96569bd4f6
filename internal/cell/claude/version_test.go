package claude

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for printed, want := range map[string]string{
		"2.1.332 (Claude Code)\n":                  "2.1.332",
		"claude v10.0.1-beta.2":                    "",
		"a warning first\n2.1.286 (Claude Code)\n": "2.1.286",
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

// TestProfileOf checks the profile of a version, and its warning.
func TestProfileOf(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]struct {
		profile string // the oldest version of the expected profile
		warning string // the version that the warning names; empty if no warning is expected
	}{
		"1.0.0":   {"2.1.286", "2.1.286"},
		"2.1.285": {"2.1.286", "2.1.286"},
		"2.1.286": {"2.1.286", ""},
		"2.1.287": {"2.1.286", "2.1.286"},
		"2.1.328": {"2.1.286", "2.1.286"},
		"2.1.329": {"2.1.329", ""},
		"2.1.332": {"2.1.329", ""},
		"2.1.333": {"2.1.329", "2.1.332"},
		"3.0.0":   {"2.1.329", "2.1.332"},
	} {
		number, err := parseVersion(asked)
		require.NoError(t, err)
		p := profileOf(number)
		require.Equal(t, want.profile, p.oldest().String(), asked)
		if want.warning == "" {
			require.Empty(t, p.warning(number), asked)
		} else {
			require.Equal(t, "claude "+asked+" is not a tested version; it is driven like "+want.warning+", the nearest that is", p.warning(number))
		}
	}
}

// TestAVersionBetweenTwoOfAProfileNeedsNoWarning covers unmeasured versions that lie between two measured versions of
// the same profile.
func TestAVersionBetweenTwoOfAProfileNeedsNoWarning(t *testing.T) {
	t.Parallel()
	p := versionProfile{measured: []version{{2, 1, 329}, {2, 1, 400}, {2, 2, 1}}}
	for _, v := range []version{{2, 1, 330}, {2, 1, 400}, {2, 1, 999}, {2, 2, 0}} {
		require.True(t, p.covers(v), v)
		require.Empty(t, p.warning(v), v)
	}
	for v, nearest := range map[version]string{{2, 1, 328}: "like 2.1.329,", {2, 2, 2}: "like 2.2.1,", {3, 0, 0}: "like 2.2.1,"} {
		require.False(t, p.covers(v), v)
		require.Contains(t, p.warning(v), nearest)
	}
}

// TestProfilesAreInOrder checks that each profile has a measured version, and that all versions are in order and occur
// once. The choice of a profile depends on that.
func TestProfilesAreInOrder(t *testing.T) {
	t.Parallel()
	var all []version
	for _, p := range versionProfiles() {
		require.NotEmpty(t, p.measured)
		all = append(all, p.measured...)
	}
	require.True(t, slices.IsSortedFunc(all, version.compare), "%v", all)
	require.Len(t, slices.Compact(all), len(all))
}

// TestContractProfile checks that each real CLI gets the profile of its release.
func TestContractProfile(t *testing.T) {
	t.Parallel()
	for _, release := range simtest.Versions(t) {
		t.Run(simtest.Number(t, release), func(t *testing.T) {
			t.Parallel()
			number, err := parseVersion(string(release))
			require.NoError(t, err)
			cli, err := Locate(t.Context(), Options{
				Path: simtest.RealCLI(t, release), ConfigDir: t.TempDir(), Environ: []string{"PATH=" + os.Getenv("PATH")},
			})
			require.NoError(t, err)
			require.Equal(t, profileOf(number).newest(), cli.profile.newest())
		})
	}
}

func TestOwnCost(t *testing.T) {
	t.Parallel()
	since := func(usd dollars) map[string]modelUsage { return map[string]modelUsage{"m": {CostUSD: usd}} }
	for name, tc := range map[string]struct {
		resumed bool
		results []resultLine
		want    float64
		known   bool
	}{
		"no result":                              {},
		"a total of a new conversation":          {results: []resultLine{{TotalCostUSD: 1}, {TotalCostUSD: 3}}, want: 3, known: true},
		"a total that goes on from the parent's": {resumed: true, results: []resultLine{{TotalCostUSD: 9}}},
		"what came since the last result": {
			resumed: true, results: []resultLine{{TotalCostUSD: 9, SinceLastResult: since(1)}, {TotalCostUSD: 11, SinceLastResult: since(2)}}, want: 3, known: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, known := ownCost(tc.results, tc.resumed)
			require.Equal(t, tc.known, known)
			require.InDelta(t, tc.want, got, 1e-12)
		})
	}
}

// TestEstimate compares the price lists with prices from the CLI's reports. The expected values are tenths of a cent
// for a thousand tokens, which equals US dollars per million tokens.
func TestEstimate(t *testing.T) {
	t.Parallel()
	type measurement struct{ input, output, cacheRead, cacheCreation float64 }
	opus, newest, sonnet5 := measurement{5, 25, 0.5, 6.25}, measurement{4, 20, 0.2, 5}, measurement{2, 10, 0.2, 2.5}
	sonnet, fable := measurement{3, 15, 0.3, 3.75}, measurement{10, 50, 1, 12.5}
	for model, want := range map[string]struct{ old, new measurement }{
		"claude-3-5-haiku-20241022":    {measurement{0.8, 4, 0.08, 1}, measurement{0.8, 4, 0.08, 1}},
		"claude-3-5-sonnet-20241022":   {sonnet, sonnet},
		"claude-3-7-sonnet-20250219":   {sonnet, sonnet},
		"claude-haiku-4-5":             {measurement{1, 5, 0.1, 1.25}, measurement{1, 5, 0.1, 1.25}},
		"claude-haiku-5":               {newest, newest},
		"claude-haiku-5-5":             {newest, measurement{0.1, 0.5, 0.01, 0.125}},
		"claude-sonnet-4-5":            {sonnet, sonnet},
		"claude-sonnet-5":              {sonnet5, sonnet5},
		"claude-sonnet-5-5":            {sonnet5, measurement{2, 10, 0.1, 2.5}},
		"claude-opus-4-5":              {opus, opus},
		"claude-opus-4-8":              {opus, opus},
		"us.anthropic.claude-opus-4-1": {measurement{15, 75, 1.5, 18.75}, measurement{15, 75, 1.5, 18.75}},
		"claude-opus-5":                {opus, opus},
		"claude-opus-5-5":              {newest, newest},
		"claude-fable-5":               {fable, fable},
		"claude-fable-5-2":             {newest, measurement{8, 40, 0.2, 10}},
		"claude-3-haiku-20240307":      {newest, newest},
		"someone-elses-model":          {newest, newest},
	} {
		for prices, want := range map[*priceList]measurement{new(oldPrices()): want.old, new(newPrices()): want.new} {
			require.InDelta(t, want.input, 1000*prices.estimate(model, usage{Input: 1000}), 1e-9, model)
			require.InDelta(t, want.output, 1000*prices.estimate(model, usage{Output: 1000}), 1e-9, model)
			require.InDelta(t, want.cacheRead, 1000*prices.estimate(model, usage{CacheRead: 1000}), 1e-9, model)
			require.InDelta(t, want.cacheCreation, 1000*prices.estimate(model, usage{CacheCreation: 1000}), 1e-9, model)
		}
	}
}

// TestEstimateUSD prices full names by the row that fits best, and aliases by the model of the newest tested version.
func TestEstimateUSD(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]struct {
		name string
		usd  float64
	}{
		"haiku": {"claude-haiku-5-5", 0.1}, "claude-haiku-4-5-20251001": {"claude-haiku-4", 1}, "opus": {"claude-opus-5-5", 4},
		"claude-opus-5-5": {"claude-opus-5-5", 4}, "fable": {"claude-fable-", 10}, "gpt-9": {"", 0},
	} {
		usd, name, known := EstimateUSD(model, Tokens{Input: 1_000_000})
		require.Equal(t, want.name, name, model)
		require.InDelta(t, want.usd, usd, 1e-9, model)
		require.Equal(t, want.name != "", known)
	}
}

func TestEstimateOfLongPromptsAndLongCaching(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 0.5, newPrices().estimate("claude-haiku-5-5", usage{Input: 1_000_000}), 1e-9)
	oneHour := usage{CacheCreation: 1_000_000}
	oneHour.Creation.OneHour = 1_000_000
	require.InDelta(t, 6, newPrices().estimate("claude-sonnet-4-5", oneHour), 1e-9)
}
