package claudesim

import (
	"maps"
	"slices"
	"strings"
)

// flagKind is the number of values that an option takes.
type flagKind int

const (
	flagSwitch flagKind = iota + 1
	flagValue
	flagList // all arguments up to the next option
)

// knownFlags returns the options that this project uses.
func knownFlags() map[string]flagKind {
	return map[string]flagKind{
		"-p": flagSwitch, "--print": flagSwitch, "--verbose": flagSwitch, "-v": flagSwitch, "--version": flagSwitch,
		"-h": flagSwitch, "--help": flagSwitch,
		"--include-partial-messages": flagSwitch, "--fork-session": flagSwitch,
		"--strict-mcp-config": flagSwitch, "--disable-slash-commands": flagSwitch, "--restricted": flagSwitch,
		"--output-format": flagValue, "--model": flagValue, "--session-id": flagValue, "--resume": flagValue,
		"-r": flagValue, "--permission-mode": flagValue, "--setting-sources": flagValue, "--settings": flagValue,
		"--append-system-prompt": flagValue, "--system-prompt-snapshot": flagValue, "--json-schema": flagValue,
		"--max-turns": flagValue, "--max-budget-usd": flagValue,
		"--tools": flagList, "--allowedTools": flagList, "--allowed-tools": flagList,
		"--disallowedTools": flagList, "--disallowed-tools": flagList,
		"--mcp-config": flagList, "--add-dir": flagList,
	}
}

// arguments is a parsed command line, with options under their long names.
type arguments struct {
	values      map[string][]string
	positionals []string
}

// has reports whether the option was given.
func (a *arguments) has(name string) bool { return a.values[name] != nil }

// value returns the last value of the option.
func (a *arguments) value(name string) string {
	if values := a.values[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

// list returns the elements of the option's values. A value can contain several elements, separated by commas.
func (a *arguments) list(name string) []string {
	var items []string
	for _, value := range a.values[name] {
		items = append(items, splitRules(value)...)
	}
	return items
}

// usage returns the output of --help: every option, one per line.
func usage() string {
	kinds := knownFlags()
	values := map[flagKind]string{flagValue: " <value>", flagList: " <values...>"}
	var text strings.Builder
	text.WriteString("Usage: claude [options]\n\nOptions:\n")
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		text.WriteString("  " + name + values[kinds[name]] + "\n")
	}
	return text.String()
}

// parseArguments parses a command line. Its errors have the CLI's wording.
func parseArguments(args []string) (*arguments, error) {
	kinds := knownFlags()
	a := &arguments{values: map[string][]string{}}
	for len(args) > 0 {
		var err error
		if args, err = a.take(args, kinds); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// take parses the beginning of args: one option with its values, or one positional argument. It returns the rest of
// args.
func (a *arguments) take(args []string, kinds map[string]flagKind) (rest []string, err error) {
	word, rest := args[0], args[1:]
	if !strings.HasPrefix(word, "-") || word == "-" {
		a.positionals = append(a.positionals, word)
		return rest, nil
	}
	name, inline, hasInline := strings.Cut(word, "=")
	long := longName(name)
	switch kinds[name] {
	case flagSwitch:
		a.values[long] = []string{"true"}
		return rest, nil
	case flagValue, flagList:
		if hasInline {
			rest = append([]string{inline}, rest...)
		}
		if len(rest) == 0 {
			return nil, refusef("error: option '%s <value>' argument missing", name)
		}
		a.values[long] = append(a.values[long], rest[0])
		rest = rest[1:]
		for kinds[name] == flagList && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			a.values[long] = append(a.values[long], rest[0])
			rest = rest[1:]
		}
		return rest, nil
	default:
		return nil, refusef("error: unknown option '%s'", name)
	}
}

// longName returns the name under which an option is stored.
func longName(name string) string {
	switch name {
	case "-p":
		return "--print"
	case "-v":
		return "--version"
	case "-h":
		return "--help"
	case "-r":
		return "--resume"
	case "--allowed-tools":
		return "--allowedTools"
	case "--disallowed-tools":
		return "--disallowedTools"
	default:
		return name
	}
}
