package claudesim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// release holds the measured differences between the versions of the CLI.
type release struct {
	version Version
	// reportsOwn means that results report the usage since the previous result, and the type of an API error. In other
	// releases they report only the totals of the conversation.
	reportsOwn bool
	// idWithoutFork is the error message if --session-id is given with --resume but without --fork-session.
	idWithoutFork string
	// quietRetries is the number of retries of a request that was refused with status 400. The CLI does not announce
	// these retries.
	quietRetries int
	// cutsOverspent means that the CLI stops before the end of the message that exhausts the budget. So the stop reason
	// in the result is that of the message before.
	cutsOverspent bool
	// warnsOfHooks means that the CLI warns once about a hook that could not answer.
	warnsOfHooks bool
	// shellOptions is the part of the Bash tool's scripts that sets shell options.
	shellOptions string
	models       []model
}

// model is one model as a release knows it.
type model struct {
	family string // part of all its names
	id     string // the id that an alias refers to
	window int
	maxOut int
	price  price
}

// price is in US dollars per million tokens.
type price struct{ input, output, cacheRead, cacheCreation float64 }

// cost returns the cost of u in US dollars.
func (p price) cost(u Usage) float64 {
	return (float64(u.Input)*p.input + float64(u.Output)*p.output +
		float64(u.CacheRead)*p.cacheRead + float64(u.CacheCreation)*p.cacheCreation) / 1e6
}

func oldRelease() release {
	return release{
		version: VersionOld, cutsOverspent: true,
		idWithoutFork: "Error: --session-id can only be used with --continue or --resume if --fork-session is also " +
			"specified.", shellOptions: "{ shopt -u extglob || setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL; }",
		models: []model{
			{"haiku", "claude-haiku-4-5-20251001", 200_000, 32_000, price{1, 5, 0.1, 1.25}},
			{"sonnet", "claude-sonnet-5-5", 1_000_000, 128_000, price{2, 10, 0.2, 2.5}},
			{"opus", "claude-opus-5-5", 1_000_000, 128_000, price{4, 20, 0.2, 5}},
		},
	}
}

func newRelease() release {
	return release{
		version: VersionNew, reportsOwn: true, quietRetries: 5, warnsOfHooks: true,
		idWithoutFork: "Error: --session-id with --continue or --resume also needs --fork-session.",
		shellOptions: `{ \builtin shopt -u extglob || \builtin setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL ` +
			`NO_BRACE_CCL NO_MAGIC_EQUAL_SUBST NO_EQUALS; }`,
		models: []model{
			{"haiku", "claude-haiku-5-5", 1_000_000, 128_000, price{0.1, 0.5, 0.01, 0.125}},
			{"sonnet", "claude-sonnet-5-5", 1_000_000, 128_000, price{2, 10, 0.1, 2.5}},
			{"opus", "claude-opus-5-5", 1_000_000, 128_000, price{4, 20, 0.2, 5}},
		},
	}
}

// Nearest returns the release that behaves most like a CLI of another version: the newest release that is not newer
// than number. For a version older than all releases, Nearest returns the oldest release. Nearest fails if number is
// not a version number.
func Nearest(number string) (Version, error) {
	asked, err := parseNumber(number)
	if err != nil {
		return "", err
	}
	nearest := VersionOld
	for _, version := range []Version{VersionOld, VersionNew} {
		own, err := parseNumber(string(version))
		if err != nil {
			return "", err
		}
		if slices.Compare(own, asked) <= 0 {
			nearest = version
		}
	}
	return nearest, nil
}

// parseNumber parses a version number such as "2.1.332".
func parseNumber(number string) ([]int, error) {
	var parts []int
	for text := range strings.SplitSeq(number, ".") {
		part, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no version number: %w", number, err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// release returns the properties of the release that s simulates.
func (s Scenario) release() release {
	if s.Version == VersionOld {
		return oldRelease()
	}
	return newRelease()
}

// model returns the model for an alias or a full name. An unknown name gets the properties of the most expensive model.
func (r release) model(name string) model {
	best := r.models[len(r.models)-1]
	if name == "" {
		return best
	}
	for _, m := range r.models {
		if name == m.family {
			return m
		}
		if strings.Contains(name, m.family) {
			m.id = name
			return m
		}
	}
	best.id = name
	return best
}
