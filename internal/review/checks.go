package review

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// ChecksFile is the file at the top of a repository that lists the commands with which changes are checked, one for each
// line. It counts as it is in the commit on which a change is based.
const ChecksFile = ".claudeops-checks"

// MarkChecks marks the files that the commands of a ChecksFile run, and those that configure them. Whoever changes such a file
// changes a check.
func MarkChecks(files []File, checks string) {
	scripts := scriptsOf(checks)
	for i := range files {
		name := files[i].Path
		files[i].Checks = slices.ContainsFunc(scripts, func(script string) bool {
			return name == script || strings.HasSuffix(name, "/"+script) ||
				strings.Contains(script, "/") && strings.HasPrefix(name, script+"/") // such as "node tools/check"
		})
	}
}

// runners are programs that run what their arguments name.
var runners = []string{
	"sh", "bash", "dash", "ash", "zsh", "ksh", "python", "python2", "python3", "node", "deno", "bun", "ruby", "perl", "php", "lua",
	"pwsh", "make", "gmake", ".", "source", "exec", "eval", "env", "time", "timeout", "nice", "sudo", "xargs", "command", "busybox",
}

// scriptsOf returns the words of a script that name what its commands run, or their configuration, as clean paths. Words that only name what is
// checked are not among them.
func scriptsOf(script string) []string {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return clean(strings.Fields(script))
	}
	var found []string
	syntax.Walk(file, func(node syntax.Node) bool {
		call, is := node.(*syntax.CallExpr)
		if !is {
			return true
		}
		runs, before := false, ""
		for i, arg := range call.Args {
			word := textOf(arg.Parts)
			if value := configured(word, before); value != "" {
				found = append(found, clean([]string{value})...)
			}
			before = word
			if runs || i == 0 && strings.Contains(word, "/") { // other commands are on the PATH
				found = append(found, clean([]string{word})...)
			}
			if runs && strings.ContainsAny(word, " \t\n;&|") {
				found = append(found, scriptsOf(word)...)
			}
			runs = slices.Contains(runners, path.Base(word)) || runs && !isFile(word)
		}
		return true
	})
	return found
}

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

// isFile reports whether a word after a runner looks like the file that it runs. The words after that are for this file.
func isFile(word string) bool {
	kind := strings.TrimPrefix(path.Ext(word), ".")
	named := strings.Contains(word, "/") || kind != "" && unicode.IsLetter(rune(kind[0]))
	return named && !strings.Contains(word, "=") && !strings.HasPrefix(word, "-")
}

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
func clean(words []string) []string {
	var paths []string
	for _, word := range words {
		name := strings.TrimPrefix(path.Clean("/"+word), "/")
		if name != "" && !strings.HasPrefix(word, "-") {
			paths = append(paths, name)
		}
	}
	return paths
}
