package claude

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
)

// versionProfile holds the properties in which versions of the CLI differ, as far as they matter to this package. A run
// depends only on its profile, not on its version.
type versionProfile struct {
	// measured lists the versions of the CLI that were measured and have this profile, oldest first. It has at least
	// one element.
	measured []version
	// prices is the price list for cost estimates.
	prices priceList
	// models maps aliases to the full names of the models for which they stand without further settings.
	models map[string]string
}

// fullName returns the full name of the model for which an alias stands. Other names are unchanged.
func (p versionProfile) fullName(model string) string { return cmp.Or(p.models[model], model) }

// newestProfile returns the profile of the newest measured version.
func newestProfile() versionProfile {
	known := versionProfiles()
	return known[len(known)-1]
}

// versionProfiles returns the profiles of the measured versions, oldest first.
func versionProfiles() []versionProfile {
	return []versionProfile{
		{measured: []version{{2, 1, 286}}, prices: oldPrices(), models: map[string]string{
			"haiku": "claude-haiku-4-5-20251001", "sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5",
		}},
		{measured: []version{{2, 1, 329}, {2, 1, 332}}, prices: newPrices(), models: map[string]string{
			"haiku": "claude-haiku-5-5", "sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5",
		}},
	}
}

// profileOf returns the newest profile that begins at or before v, or the oldest profile if v is older than all.
func profileOf(v version) versionProfile {
	known := versionProfiles()
	chosen := known[0]
	for _, p := range known[1:] {
		if p.oldest().compare(v) <= 0 {
			chosen = p
		}
	}
	return chosen
}

func (p versionProfile) oldest() version { return p.measured[0] }

func (p versionProfile) newest() version { return p.measured[len(p.measured)-1] }

// covers reports whether v is a measured version of the profile, or lies between two of its measured versions. A
// version in between is assumed to behave like both.
func (p versionProfile) covers(v version) bool {
	return p.oldest().compare(v) <= 0 && v.compare(p.newest()) <= 0
}

// warning returns a warning if the profile does not cover v; otherwise it returns "". The text names the measured
// version of the profile that is nearest to v.
func (p versionProfile) warning(v version) string {
	if p.covers(v) {
		return ""
	}
	nearest := p.newest()
	if v.compare(p.oldest()) < 0 {
		nearest = p.oldest()
	}
	return fmt.Sprintf("claude %s is not a tested version; it is driven like %s, the nearest that is", v, nearest)
}

// version is a version number of the CLI.
type version struct{ major, minor, patch int }

// String returns the version in the form "2.1.332".
func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch) }

// earliest is the oldest version with the options and hooks that this package uses. Older ones are not driven at all.
var earliest = version{2, 1, 0}

func (v version) compare(other version) int {
	return cmp.Or(cmp.Compare(v.major, other.major), cmp.Compare(v.minor, other.minor),
		cmp.Compare(v.patch, other.patch))
}

var versionPattern = regexp.MustCompile(`\b(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b`)

// parseVersion finds the version number in the output of `claude --version`.
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
