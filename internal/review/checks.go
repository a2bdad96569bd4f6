package review

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ChecksFile is the file at the top of a repository that lists the commands with which changes are checked, one for each
// line. It counts as it is in the commit on which a change is based.
const ChecksFile = ".claudeops-checks"

// maxScripts limits the files that MarkChecks reads.
const maxScripts = 100

// MarkChecks marks the files that the commands of a ChecksFile run, and those that configure them. Whoever changes such a file
// changes a check. What a script of the shell, a makefile or a package.json runs counts, too: the function read returns such a file of
// the base commit, empty if there is none.
func MarkChecks(files []File, checks string, read func(name string) string) {
	scripts := scriptsOf(checks)
	for at := 0; at < len(scripts) && at < maxScripts; at++ { // scripts grows
		for _, script := range scriptsOf(commandsIn(scripts[at], read(scripts[at]))) {
			if !slices.Contains(scripts, script) {
				scripts = append(scripts, script)
			}
		}
	}
	for i := range files {
		name := files[i].Path
		files[i].Checks = slices.ContainsFunc(scripts, func(script string) bool {
			matches, _ := path.Match(script, name)
			return matches || name == script || strings.HasSuffix(name, "/"+script) ||
				strings.Contains(script, "/") && strings.HasPrefix(name, script+"/") // such as "node tools/check"
		})
	}
}

// commandsIn returns the commands of the shell in a file: in a script, in the recipes of a makefile, or in the scripts of a
// package.json; empty if it is another file.
func commandsIn(name, text string) string {
	switch path.Base(name) {
	case makefiles[0], makefiles[1], makefiles[2]:
		var recipes strings.Builder
		for line := range strings.Lines(text) {
			if recipe, is := strings.CutPrefix(line, "\t"); is {
				recipes.WriteString(strings.ReplaceAll(strings.TrimLeft(recipe, "@-+"), "$(", "${")) // a variable of make
			}
		}
		return recipes.String()
	case packageFile:
		var of struct {
			Scripts map[string]string `json:"scripts"`
		}
		if json.Unmarshal([]byte(text), &of) != nil {
			return ""
		}
		names := slices.Sorted(maps.Keys(of.Scripts))
		var all strings.Builder
		for _, name := range names {
			all.WriteString(of.Scripts[name] + "\n")
		}
		return all.String()
	}
	first, _, _ := strings.Cut(text, "\n")
	if shebang := strings.HasPrefix(first, "#!"); shebang && shellLine.MatchString(first) ||
		!shebang && slices.Contains([]string{"", ".sh", ".bash"}, path.Ext(name)) {
		return text
	}
	return ""
}

// The files whose commands make and npm run.
const packageFile = "package.json"

var makefiles = [...]string{"GNUmakefile", "makefile", "Makefile"}

var shellLine = regexp.MustCompile(`[/ ](sh|bash|dash|ash|zsh|ksh)\b`)

// wrappers are programs that run the command in their arguments, and interpreters those that run a file.
var (
	wrappers = []string{
		"exec", "env", "time", "timeout", "nice", "nohup", "sudo", "xargs", "command", "busybox", "builtin",
	}
	interpreters = regexp.MustCompile(
		`^(sh|bash|dash|ash|zsh|ksh|python[0-9.]*|node|deno|ruby|perl|php|lua|pwsh|bats|run-parts|\.|source|eval)$`)
)

// scriptsOf returns the words of commands that name what they run, or their configuration, as clean paths. If not all of the
// commands can be parsed, each line is a command of its own, and a line that cannot be parsed counts word by word.
func scriptsOf(commands string) []string {
	found, err := runIn(commands)
	if err == nil {
		return found
	}
	found = nil
	for line := range strings.Lines(commands) {
		run, err := runIn(line)
		if err != nil {
			run = clean(strings.Fields(line)...)
		}
		found = append(found, run...)
	}
	return found
}

// runIn returns the words of commands that name what they run, or their configuration.
func runIn(commands string) ([]string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(commands), "")
	if err != nil {
		return nil, err
	}
	var found []string
	syntax.Walk(file, func(node syntax.Node) bool {
		if stmt, is := node.(*syntax.Stmt); is {
			found = append(found, runBy(stmt)...)
		}
		return true
	})
	return found, nil
}

// runBy returns the words of a command that name what it runs, or its configuration.
func runBy(stmt *syntax.Stmt) []string {
	call, is := stmt.Cmd.(*syntax.CallExpr)
	if !is {
		return nil
	}
	var found []string
	run := reading{}
	for _, arg := range call.Args {
		word := textOf(arg.Parts)
		found = append(found, clean(configured(word, run.before))...)
		found = append(found, run.next(word)...)
		run.before = word
	}
	for _, redirect := range stmt.Redirs {
		if run.interpreted && redirect.Op == syntax.RdrIn {
			found = append(found, clean(textOf(redirect.Word.Parts))...)
		}
	}
	return found
}

// reading reads the words of a command, one after the other.
type reading struct {
	// before is the word before.
	before string
	// interpreted reports that an interpreter was named, and done that what the command runs was.
	interpreted, done bool
}

// next returns what the command runs if a word names it.
func (r *reading) next(word string) []string {
	name := path.Base(word)
	switch {
	case r.done || word == "":
	case r.interpreted && r.before == "-m": // a module
		r.done = true
		return clean(strings.ReplaceAll(word, ".", "/") + ".py")
	case r.interpreted && strings.ContainsAny(word, " \t\n;&|"): // commands
		r.done = true
		return scriptsOf(word)
	case strings.HasPrefix(word, "-"), strings.Contains(word, "="):
	case r.interpreted:
		r.done = true
		if named := clean(word); named != nil {
			return append(named, named[0]+"/*") // also a directory
		}
	case isNumber(word), name == "go", slices.Contains(wrappers, name):
	case word == "run" && path.Base(r.before) == "go":
		r.interpreted = true
	case interpreters.MatchString(name):
		r.interpreted = true
	case strings.HasSuffix(name, "make"):
		r.done = true
		return makefiles[:]
	case slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, name):
		r.interpreted, r.done = name == "bun", name != "bun" // which also runs files
		return []string{packageFile}
	default:
		r.done = true
		if strings.Contains(word, "/") { // other commands are on the PATH
			return clean(word)
		}
	}
	return nil
}

// isNumber reports whether a word is a number, such as a time limit.
func isNumber(word string) bool { return numberPattern.MatchString(word) }

var numberPattern = regexp.MustCompile(`^\d[0-9.]*[smhd]?$`)

// configured returns the file that an option names as the configuration of a check; empty if a word, after the word before it, names
// none. "docker compose -f" names what is checked.
func configured(word, before string) string {
	option, value, inside := strings.Cut(word, "=")
	if !inside {
		option, value = before, word
	}
	if option == "-c" || option == "-C" || strings.HasPrefix(option, "--") && configOption.MatchString(option) {
		return value
	}
	return ""
}

// configOption matches long options such as --config, --config-file and --rcfile.
var configOption = regexp.MustCompile(`^--[a-z-]*(conf|config|rcfile|rules|policy|schema)[a-z-]*$`)

// textOf returns the text of a word without its quotes. It leaves out what the shell computes.
func textOf(parts []syntax.WordPart) string {
	var text strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text.WriteString(part.Value)
		case *syntax.SglQuoted:
			text.WriteString(part.Value)
		case *syntax.DblQuoted:
			text.WriteString(textOf(part.Parts))
		}
	}
	return text.String()
}

// clean returns words as paths below the top of a repository. It leaves out options, and what cannot be such a path.
func clean(words ...string) []string {
	var paths []string
	for _, word := range words {
		name := strings.TrimPrefix(path.Clean("/"+word), "/")
		if name != "" && !strings.HasPrefix(word, "-") {
			paths = append(paths, name)
		}
	}
	return paths
}
