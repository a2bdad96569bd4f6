package claudesim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// release is what differs between the versions of the CLI, as measured.
type release struct {
	version Version
	// cumulative: the total cost continues from the conversation's cost-state line, and
	// results tell what was used since the result before.
	cumulative bool
	// findsAnywhere: a conversation is found from any working directory.
	findsAnywhere bool
	// keepsToolCall: a resumed conversation still has the tool call that the process died in.
	keepsToolCall bool
	// refusesBlank: a prompt of white space only is an error instead of nothing at all.
	refusesBlank bool
	// checksValues: option values and schemas are checked before anything runs.
	checksValues bool
	// interruptExit is the exit code after a SIGINT that hit a running tool.
	interruptExit int
	// stopsToolsOnTerm: SIGTERM stops the running tool too.
	stopsToolsOnTerm bool
	// apiErrorReason is the terminal_reason of an API error.
	apiErrorReason string
	// idWithoutFork is what it says to --session-id with --resume but no --fork-session.
	idWithoutFork string
	// budgetReason and schemaReason are the terminal reasons of results that the old release leaves
	// without one.
	budgetReason, schemaReason string
	// forgetsLastCall: the call that exhausts the attempts at a schema has no cost.
	forgetsLastCall bool
	// quietRepeats is how often a request that was refused with 400 is made again
	// without a word.
	quietRepeats int
	// blamesHook: the model reads that a hook denied its call, besides the hook's reason, unless the call has a relative
	// path.
	blamesHook bool
	// warnsOfHooks: it says once that a hook could not answer.
	warnsOfHooks bool
	// shellOptions is how the scripts of the Bash tool set up the shell.
	shellOptions string
	// flags that exist in this release only.
	flags  map[string]flagKind
	models []model
}

// model is one model as a release knows it.
type model struct {
	family string // contained in every name of it
	id     string // what an alias stands for
	window int
	maxOut int
	price  price
}

// price is in US dollars per million tokens.
type price struct{ input, output, cacheRead, cacheCreation float64 }

// cost returns what u costs, in US dollars.
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
		version: VersionNew, cumulative: true, findsAnywhere: true, keepsToolCall: true, refusesBlank: true,
		checksValues: true, stopsToolsOnTerm: true, quietRepeats: 5, apiErrorReason: "api_error",
		idWithoutFork: "Error: --session-id with --continue or --resume also needs --fork-session.",
		budgetReason:  "budget_exhausted", schemaReason: "structured_output_retry_exhausted",
		blamesHook: true, warnsOfHooks: true,
		shellOptions: `{ \builtin shopt -u extglob || \builtin setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL NO_BRACE_CCL; }`,
		flags:        map[string]flagKind{"--system-prompt-snapshot": flagValue, "--restricted": flagSwitch},
		models: []model{
			{"haiku", "claude-haiku-5-5", 1_000_000, 128_000, price{0.1, 0.5, 0.01, 0.125}},
			{"sonnet", "claude-sonnet-5-5", 1_000_000, 128_000, price{2, 10, 0.1, 2.5}},
			{"opus", "claude-opus-5-5", 1_000_000, 128_000, price{4, 20, 0.2, 5}},
		},
	}
}

// Nearest returns the release that a CLI of another version behaves like, as far as its number and what
// --help prints tell: the newest that is not newer, or a newer one all of whose own options it has. A
// version before all of them gets the oldest. The error says that number is no version number.
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
		if slices.Compare(own, asked) <= 0 || r.helpedBy(help) {
			nearest = r.version
		}
	}
	return nearest, nil
}

// helpedBy reports whether help names every option that only r has, and there is one.
func (r release) helpedBy(help string) bool {
	words := strings.Fields(help)
	for name := range r.flags {
		if !slices.Contains(words, name) {
			return false
		}
	}
	return len(r.flags) > 0
}

// parseNumber takes a version number such as "2.1.330" apart.
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

// release returns how the program that plays s behaves.
func (s Scenario) release() release {
	if s.Version == VersionOld {
		return oldRelease()
	}
	return newRelease()
}

// model returns the model that name, an alias or a full name, stands for. An unknown
// name is kept and priced as the most expensive model.
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
