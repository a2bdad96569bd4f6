package claudesim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// options holds the parsed options of one launch.
type options struct {
	sessionID    string // as given; if empty, the program chooses one
	resume       string // the conversation to continue; if empty, a new one starts
	fork         bool
	model        string
	permissions  permissions
	hooks        []hook
	appended     string // the appended system prompt
	schema       *schema
	maxTurns     int     // 0 means no limit
	maxBudgetUSD float64 // 0 means no limit
	partial      bool
	prompt       string
}

// refusal is the CLI's message on stderr when it refuses to run.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

func refusef(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// readOptions parses a command line and checks it in the same order as the CLI. The error is a refusal.
func readOptions(args []string, stdin string, r release) (options, error) {
	a, err := parseArguments(args)
	if err != nil {
		return options{}, err
	}
	o := options{
		sessionID: a.value("--session-id"), resume: a.value("--resume"), fork: a.has("--fork-session"),
		model: a.value("--model"), appended: a.value("--append-system-prompt"),
		partial:     a.has("--include-partial-messages"),
		permissions: newPermissions(a), hooks: readHooks(a.value("--settings")),
		prompt: strings.Join(append(a.positionals, stdin), "\n"),
	}
	if len(a.positionals) == 0 {
		o.prompt = stdin
	}
	checkIDs := func(*arguments) error { return o.checkIDs(r) }
	for _, check := range []func(*arguments) error{
		o.readNumbers, checkIDs, o.checkOutput, o.readSchema,
		o.checkPrompt,
	} {
		if err := check(a); err != nil {
			return options{}, err
		}
	}
	return o, nil
}

func (o *options) readNumbers(a *arguments) error {
	turns, err := strconv.Atoi(a.value("--max-turns"))
	if err != nil && a.has("--max-turns") {
		return refusef("error: option '--max-turns <turns>' argument '%s' is invalid. must be a number",
			a.value("--max-turns"))
	}
	budget, err := strconv.ParseFloat(a.value("--max-budget-usd"), 64)
	if err != nil && a.has("--max-budget-usd") {
		return refusef("error: option '--max-budget-usd <amount>' argument '%s' is invalid",
			a.value("--max-budget-usd"))
	}
	o.maxTurns, o.maxBudgetUSD = turns, budget
	return nil
}

func (o *options) checkIDs(r release) error {
	switch {
	case o.sessionID == "":
		return nil
	case o.resume != "" && !o.fork:
		return refusal(r.idWithoutFork)
	case uuid.Validate(o.sessionID) != nil:
		return refusal("Error: Invalid session ID. Must be a valid UUID.")
	default:
		return nil
	}
}

func (o *options) checkOutput(a *arguments) error {
	switch {
	case !a.has("--print"):
		return refusal("the stand-in has no interactive mode: pass -p")
	case a.value("--output-format") != "stream-json":
		return refusal("the stand-in prints stream-json only: pass --output-format stream-json")
	case !a.has("--verbose"):
		return refusal("Error: When using --print, --output-format=stream-json requires --verbose")
	default:
		return nil
	}
}

func (o *options) readSchema(a *arguments) error {
	if !a.has("--json-schema") {
		return nil
	}
	text := a.value("--json-schema")
	if !json.Valid([]byte(text)) {
		return refusal("Error: --json-schema is not valid JSON: JSON Parse error")
	}
	parsed, err := parseSchema([]byte(text))
	if err != nil {
		return refusef("Error: --json-schema is not a valid JSON Schema: %v", err)
	}
	o.schema = parsed
	return nil
}

func (o *options) checkPrompt(*arguments) error {
	const sources = "through stdin or as a prompt argument when using --print"
	switch {
	case o.prompt == "":
		return refusal("Error: Input must be provided either " + sources)
	case strings.TrimSpace(o.prompt) == "":
		return refusal("Error: Input contained only whitespace. Provide a prompt with text " + sources)
	default:
		return nil
	}
}
