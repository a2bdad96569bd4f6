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
	// asksRefused means that the CLI asks the model once more after a refusal, and prints its own messages to the model.
	asksRefused bool
	// cumulative means that the reported total cost includes the cost of earlier processes, which the conversation's
	// cost-state line holds. The results of such a release also report the usage since the previous result.
	cumulative bool
	// findsAnywhere means that the CLI finds a conversation to resume from every working directory.
	findsAnywhere bool
	// keepsToolCall means that a resumed conversation keeps the tool call during which the process died.
	keepsToolCall bool
	// refusesBlank means that a blank prompt is an error. In other releases the CLI does nothing for such a prompt.
	refusesBlank bool
	// checksValues means that an invalid --max-turns or an invalid schema is an error before the run. Other releases
	// ignore such a value.
	checksValues bool
	// interruptExit is the exit code after a SIGINT during a tool call.
	interruptExit int
	// stopsToolsOnTerm means that SIGTERM also stops the running tool.
	stopsToolsOnTerm bool
	// apiErrorReason is the terminal_reason of an API error.
	apiErrorReason string
	// idWithoutFork is the error message if --session-id is given with --resume but without --fork-session.
	idWithoutFork string
	// budgetReason and schemaReason are the terminal_reason after an exhausted budget, and after too many structured
	// outputs that violate the schema. Both are empty in the old release.
	budgetReason, schemaReason string
	// forgetsLastCall means that the cost omits the last model call if the run ends because of structured outputs that
	// violate the schema.
	forgetsLastCall bool
	// quietRetries is the number of retries of a request that was refused with status 400. The CLI does not announce
	// these retries.
	quietRetries int
	// prefixesDenials means that the message about a call that a hook denied with "deny" begins with denialPrefix.
	// Calls with a relative path are an exception.
	prefixesDenials bool
	// warnsOfHooks means that the CLI warns once about a hook that could not answer.
	warnsOfHooks bool
	// shellOptions is the part of the Bash tool's scripts that sets shell options.
	shellOptions string
	// flags are the options that exist in this release only.
	flags  map[string]flagKind
	models []model
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
		version: VersionOld, interruptExit: 1, apiErrorReason: "completed", forgetsLastCall: true,
		shellOptions:  "{ shopt -u extglob || setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL; }",
		idWithoutFork: "Error: --session-id can only be used with --continue or --resume if --fork-session is also specified.",
		models: []model{
			{"haiku", "claude-haiku-4-5-20251001", 200_000, 32_000, price{1, 5, 0.1, 1.25}},
			{"sonnet", "claude-sonnet-5", 200_000, 64_000, price{3, 15, 0.3, 3.75}},
			{"opus", "claude-opus-4-8", 200_000, 64_000, price{5, 25, 0.5, 6.25}},
		},
	}
}

func newRelease() release {
	return release{
		version: VersionNew, asksRefused: true, cumulative: true, findsAnywhere: true, keepsToolCall: true, refusesBlank: true,
		checksValues: true, stopsToolsOnTerm: true, quietRetries: 5, apiErrorReason: "api_error",
		idWithoutFork: "Error: --session-id with --continue or --resume also needs --fork-session.",
		budgetReason:  "budget_exhausted", schemaReason: "structured_output_retry_exhausted",
		prefixesDenials: true, warnsOfHooks: true,
		shellOptions: `{ \builtin shopt -u extglob || \builtin setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL NO_BRACE_CCL; }`,
		flags:        map[string]flagKind{"--system-prompt-snapshot": flagValue, "--restricted": flagSwitch},
		models: []model{
			{"haiku", "claude-haiku-5-5", 1_000_000, 128_000, price{0.1, 0.5, 0.01, 0.125}},
			{"sonnet", "claude-sonnet-5-5", 1_000_000, 128_000, price{2, 10, 0.1, 2.5}},
			{"opus", "claude-opus-5-5", 1_000_000, 128_000, price{4, 20, 0.2, 5}},
		},
	}
}

// Nearest returns the release that behaves most like a CLI of another version. The parameter number is that CLI's
// version, and help is that CLI's output of --help. Nearest returns the newest release that is not newer than number.
// If help lists all options that only a newer release has, Nearest returns that newer release. For a version older than
// all releases, Nearest returns the oldest release. Nearest fails if number is not a version number.
func Nearest(number, help string) (Version, error) {
	asked, err := parseNumber(number)
	if err != nil {
		return "", err
	}
	nearest := VersionOld
	for _, r := range []release{oldRelease(), newRelease()} {
		own, err := parseNumber(string(r.version))
		if err != nil {
			return "", err
		}
		if slices.Compare(own, asked) <= 0 || r.listedIn(help) {
			nearest = r.version
		}
	}
	return nearest, nil
}

// listedIn reports whether r has options that are missing in all other releases, and help lists all these options.
func (r release) listedIn(help string) bool {
	words := strings.Fields(help)
	for name := range r.flags {
		if !slices.Contains(words, name) {
			return false
		}
	}
	return len(r.flags) > 0
}

// parseNumber parses a version number such as "2.1.330".
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
