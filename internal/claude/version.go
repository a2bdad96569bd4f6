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

// versionProfile holds everything in which the measured versions of the CLI differ and which this
// package has to know. A run asks its profile and never its version.
type versionProfile struct {
	// measured are the versions that were measured and behave like this, oldest first. There is at least one.
	measured []version
	// flags are passed on every invocation.
	flags []string
	// carriesCost says that total_cost_usd goes on from the conversation that is resumed, so that
	// it is not this invocation's own.
	carriesCost bool
	// prices are for estimates.
	prices priceList
}

// versionProfiles returns the measured ones, oldest first.
func versionProfiles() []versionProfile {
	return []versionProfile{
		{measured: []version{{2, 1, 197}}, prices: oldPrices()},
		{
			measured: []version{{2, 1, 329}, {2, 1, 330}},
			// Without the second flag a resumed conversation keeps its first launch's system prompt
			// and ignores this one's.
			flags:       []string{"--restricted", "--system-prompt-snapshot", "off"},
			carriesCost: true,
			prices:      newPrices(),
		},
	}
}

// coveringProfile returns the profile that covers v, if one does.
func coveringProfile(v version) (versionProfile, bool) {
	for _, p := range versionProfiles() {
		if p.covers(v) {
			return p, true
		}
	}
	return versionProfile{}, false
}

// nearestProfile chooses a profile for a version that none covers, whose help is given: the newest
// profile that begins before v, because a flag hardly goes away, or a newer one all of whose flags v
// has already. A version that is older than all of them and has none of the flags gets the oldest.
func nearestProfile(v version, help string) versionProfile {
	known := versionProfiles()
	chosen := known[0]
	for _, p := range known[1:] {
		if p.oldest().compare(v) <= 0 || p.listedIn(help) {
			chosen = p
		}
	}
	return chosen
}

func (p versionProfile) oldest() version { return p.measured[0] }

func (p versionProfile) newest() version { return p.measured[len(p.measured)-1] }

// covers reports whether v was measured or lies between two versions that were: what both do, it
// does too.
func (p versionProfile) covers(v version) bool {
	return p.oldest().compare(v) <= 0 && v.compare(p.newest()) <= 0
}

// listedIn reports whether help names every flag of p, and p has any.
func (p versionProfile) listedIn(help string) bool {
	words := strings.FieldsFunc(help, func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '=' })
	for _, flag := range p.flags {
		if strings.HasPrefix(flag, "--") && !slices.Contains(words, flag) {
			return false
		}
	}
	return len(p.flags) > 0
}

// warning returns a sentence when p does not cover v, or "". It names the measured version that is
// nearest to v.
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

// String returns "2.1.330" and the like.
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
