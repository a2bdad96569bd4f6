package claude

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// dialect is everything in which the measured versions of the CLI differ and which this
// package has to know. A run asks its dialect and never its version.
type dialect struct {
	// measured is the version that was measured.
	measured version
	// flags are passed on every invocation.
	flags []string
	// carriesCost says that total_cost_usd goes on from the conversation that is resumed, so that
	// it is not this invocation's own.
	carriesCost bool
	// prices are for estimates.
	prices priceList
}

// dialects returns the measured ones, oldest first.
func dialects() []dialect {
	return []dialect{
		{measured: version{2, 1, 197}, prices: oldPrices()},
		{
			measured: version{2, 1, 329},
			// Without the second flag a resumed conversation keeps its first launch's system prompt
			// and ignores this one's.
			flags:       []string{"--restricted", "--system-prompt-snapshot", "off"},
			carriesCost: true,
			prices:      newPrices(),
		},
	}
}

// measuredDialect returns the dialect that was measured on v, if one was.
func measuredDialect(v version) (dialect, bool) {
	for _, d := range dialects() {
		if d.measured == v {
			return d, true
		}
	}
	return dialect{}, false
}

// nearestDialect chooses for a version that was not measured, whose help is given: the newest
// measured dialect that is not newer than v, because a flag hardly goes away, or a newer one
// all of whose flags v has already. Whatever is older than all of them and has none of the flags gets
// the oldest.
func nearestDialect(v version, help string) dialect {
	known := dialects()
	chosen := known[0]
	for _, d := range known[1:] {
		if d.measured.compare(v) <= 0 || d.listedIn(help) {
			chosen = d
		}
	}
	return chosen
}

// listedIn reports whether help names every flag of d, and d has any.
func (d dialect) listedIn(help string) bool {
	words := strings.FieldsFunc(help, func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '=' })
	for _, flag := range d.flags {
		if strings.HasPrefix(flag, "--") && !slices.Contains(words, flag) {
			return false
		}
	}
	return len(d.flags) > 0
}

// ownCost returns what an invocation itself cost, in US dollars, going by all its result
// lines. It reports false when they do not tell.
func (d dialect) ownCost(results []resultLine) (float64, bool) {
	if len(results) == 0 {
		return 0, false
	}
	unknown := func(r resultLine) bool { return r.SinceLastResult == nil }
	if !slices.ContainsFunc(results, unknown) {
		return sumSinceLast(results), true
	}
	if d.carriesCost {
		return 0, false
	}
	// Every line repeats the process's total so far.
	return results[len(results)-1].TotalCostUSD.usd(), true
}

func sumSinceLast(results []resultLine) float64 {
	total := 0.0
	for _, result := range results {
		for _, model := range result.SinceLastResult {
			total += model.CostUSD.usd()
		}
	}
	return total
}

// warning returns a sentence when v is not the version that was measured, or "".
func (d dialect) warning(v version) string {
	if d.measured == v {
		return ""
	}
	return fmt.Sprintf("claude %s is not a tested version; it is driven like %s, the nearest that is", v, d.measured)
}

// version is a version number of the CLI.
type version struct{ major, minor, patch int }

// String returns "2.1.329" and the like.
func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch) }

func (v version) compare(other version) int {
	return cmp.Or(cmp.Compare(v.major, other.major), cmp.Compare(v.minor, other.minor), cmp.Compare(v.patch, other.patch))
}

var versionPattern = regexp.MustCompile(`\b(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b`)

// parseVersion finds the version number in what `claude --version` printed.
func parseVersion(printed string) (version, error) {
	match := versionPattern.FindStringSubmatch(printed)
	if match == nil {
		return version{}, fmt.Errorf("no version number in %q", printed)
	}
	var numbers [3]int
	for i := range numbers {
		number, err := strconv.Atoi(match[i+1])
		if err != nil {
			return version{}, fmt.Errorf("version %q: %w", match[0], err)
		}
		numbers[i] = number
	}
	return version{numbers[0], numbers[1], numbers[2]}, nil
}
