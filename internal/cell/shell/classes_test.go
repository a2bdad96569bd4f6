//go:build linux

package shell

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// refusedBefore returns why the guard refuses a script before it runs, or "".
func refusedBefore(script string) string {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	switch {
	case err != nil:
		return "refused: does not parse"
	case strings.ContainsFunc(script, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return "refused: a control character"
	case brokenDelimiter.MatchString(script):
		return "left out: here-documents that end at two lines in bash, and not here"
	case endless.MatchString(script):
		return "left out: endless loops, jobs that are killed, and processes that wait for a reader"
	case calls(file):
		return "left out: functions that call functions, which may not end"
	case contains(file, isLacking):
		return "refused: coprocesses, and descriptors above 2"
	}
	return ""
}

// calls reports whether a function of the script calls a function of the script.
func calls(file *syntax.File) bool {
	functions := map[string]bool{}
	contains(file, func(node syntax.Node) bool {
		if function, is := node.(*syntax.FuncDecl); is {
			functions[function.Name.Value] = true
		}
		return false
	})
	return len(functions) > 0 && contains(file, func(node syntax.Node) bool {
		function, is := node.(*syntax.FuncDecl)
		return is && contains(function.Body, func(inner syntax.Node) bool {
			call, is := inner.(*syntax.CallExpr)
			if !is || len(call.Args) == 0 {
				return false
			}
			name := call.Args[0].Lit()
			return name == "" || functions[name] || name == "eval"
		})
	})
}

// brokenDelimiter matches a here-document whose delimiter bash puts together from two lines.
var brokenDelimiter = regexp.MustCompile(`(?s)<<.*\n\t*(E|EO|EOF)\\\n`)

// endless matches scripts that do not end with the stand-ins, or whose end depends on the time. TestBehaviour kills
// jobs.
var endless = regexp.MustCompile(`\bkill\s+%|while\s*(true|:|\(\()|\buntil\b|\w*:\s*\|\s*:|for\s*\(\([^k]|(?s:<\(.*\bwait\b)|[<>]\([^)]*[<>]\(|>\(`)

func isLacking(node syntax.Node) bool {
	switch n := node.(type) {
	case *syntax.CoprocClause:
		return true
	case *syntax.Redirect:
		target := n.Word.Lit()
		file := n.Op == syntax.DplOut && n.N == nil && strings.Trim(target, "0123456789-") != ""
		duplicates := n.Op == syntax.DplOut || n.Op == syntax.DplIn
		return n.N != nil && !slices.Contains([]string{"0", "1", "2"}, n.N.Value) || n.Op == syntax.RdrInOut ||
			duplicates && !file && !slices.Contains([]string{"", "1", "2", "-"}, target)
	}
	return false
}

// classes lists the differences that are harmless, each with the reason. In none does a command run here that bash does
// not run, unless bash stops at a mistake in the script. Whatever runs is judged in any case.
var classes = []struct {
	name     string
	harmless func(script string, bash, ours outcome) bool
}{
	// The agent reads what is not supported and writes it differently. Until then, fewer commands have run, or with less input.
	{"refused here, with the reason", func(script string, bash, ours outcome) bool {
		return refusal.MatchString(ours.errors) && (isPart(programs(ours), programs(bash)) || handlesFailure.MatchString(script))
	}},
	// bash calculates with a text that names itself.
	{"bash does not end", func(_ string, bash, _ outcome) bool { return bash.stuck }},
	{"programs of the working directory", func(script string, _, _ outcome) bool { return strings.Contains(script, "PATH=") }},
	// A mistaken script: bash ends it with an error. Here the mistaken part is empty or 0, and the script goes on.
	{"bash stops at a mistake", func(script string, bash, ours outcome) bool {
		return mistake.MatchString(bash.errors) && (isPart(programs(bash), programs(ours)) || isPart(programs(ours), programs(bash)) || inIndex.MatchString(script) || calculates.MatchString(script))
	}},
	// Here ${x/PATTERN/$(COMMAND)} runs the command, in bash only if x matches.
	{"commands in expansions", func(script string, bash, ours outcome) bool {
		return inExpansion.MatchString(script) && isPart(programs(bash), programs(ours))
	}},
	// Scripts tell success from failure, not one failure from another.
	{"another exit code of a failure", func(_ string, bash, ours outcome) bool {
		return slices.Equal(bash.calls, ours.calls) && bash.files == ours.files && bash.code != 0 && ours.code != 0
	}},
	// Here the second part of [[ A || B ]] is always expanded.
	{"commands in conditions", func(script string, bash, ours outcome) bool {
		return inCondition.MatchString(script) && isPart(programs(bash), programs(ours))
	}},
	// In ${x#"$y"} the characters * ? [ of y are a pattern here.
	{"quoted patterns", func(script string, bash, ours outcome) bool {
		return quotedPattern.MatchString(script) && slices.Equal(programs(ours), programs(bash))
	}},
	// ${x:=y} sets x before or after another part of its command is read.
	{"the order of expansions", func(script string, bash, ours outcome) bool {
		return strings.Contains(script, ":=") && slices.Equal(programs(ours), programs(bash))
	}},
	// With set -e, the exit code of a compound command is 0 here if bash ignores it.
	{"an ignored exit code", func(script string, bash, ours outcome) bool {
		return strings.Contains(script, "set -e") && bash.code != 0 && slices.Equal(ours.calls, bash.calls)
	}},
	// An empty word in quotes in a default is no word here.
	{"quotes in a default", func(script string, _, _ outcome) bool {
		return inDefault.MatchString(script)
	}},
	// Here the redirections of an assignment also hold for the commands in its value.
	{"redirections of an assignment", func(script string, bash, ours outcome) bool {
		return assigned.MatchString(script) && (isPart(programs(ours), programs(bash)) || isPart(programs(bash), programs(ours)))
	}},
	// In bash a function stands in for exec, which does not look for a file.
	{"exec of a file", func(script string, bash, ours outcome) bool {
		return strings.Contains(script, "exec") && (bash.code == exitMissing || isPart(programs(ours), programs(bash)))
	}},
	// An error message that becomes words of a command.
	{"messages as words", func(script string, _, _ outcome) bool {
		return messageAsWord.MatchString(script)
	}},
	// A redirection fails. Here its command has then done less.
	{"a file that cannot be opened", func(_ string, bash, ours outcome) bool {
		return unopened.MatchString(ours.errors) && isPart(programs(ours), programs(bash))
	}},
	// echo and its like end where nobody reads any more. In bash they may come before the end of the reader.
	{"a reader that has ended", func(script string, bash, ours outcome) bool {
		return endedReader.MatchString(script) && isPart(ours.calls, bash.calls)
	}},
	// Here shift succeeds without parameters, too.
	{"shift without parameters", func(script string, _, _ outcome) bool { return shifts.MatchString(script) }},
	// Before the first command of a loop, $? is 0 here, in bash the exit code of a command in the loop's words.
	{"an exit code as a word", func(script string, bash, ours outcome) bool {
		return strings.Contains(script, "$?") && slices.Equal(programs(ours), programs(bash))
	}},
	// Here <<- loses an empty first line.
	{"an empty first line of a here-document", func(script string, bash, ours outcome) bool {
		return strings.Contains(script, "<<-") && slices.Equal(programs(ours), programs(bash))
	}},
	// Other characters separate the words of eval, a comment follows (...) without a space, and aliases hold at once.
	{"another grammar", func(script string, _, _ outcome) bool { return otherGrammar.MatchString(script) }},
	// A process that nobody reads waits for its reader here, and is never started. In bash it runs.
	{"a substituted process that nobody reads", func(script string, bash, ours outcome) bool {
		return strings.Contains(script, "<(") && isPart(programs(ours), programs(bash))
	}},
	// The numbers of processes and lines, and random numbers, are others in each run of bash, too.
	{"values of the process", func(script string, bash, ours outcome) bool {
		return ofProcess.MatchString(script) && slices.Equal(programs(ours), programs(bash))
	}},
	// bash has its libraries and its driver in its root directory.
	{"the files of the two root directories", func(script string, _, _ outcome) bool {
		return ofRoot.MatchString(script)
	}},
	// People read these, no script does.
	{"the words of messages and listings", func(script string, bash, ours outcome) bool {
		return (listing.MatchString(script) || hidden.MatchString(script) || ours.errors != "" || bash.errors != "") && slices.Equal(programs(ours), programs(bash))
	}},
	// bash runs the commands in a[$(COMMAND)] when it calculates with such a text; here the text is 0.
	{"bash runs commands in numbers", func(script string, bash, ours outcome) bool {
		return calculates.MatchString(script) && (isPart(programs(ours), programs(bash)) || strings.Contains(script, "2>")) // or hides the mistake
	}},
}

var (
	refusal = regexp.MustCompile(`(is|are) not supported|unsupported|unhandled|NOT IMPLEMENTED|invalid (option|signal|format)|invalid indirect|can only be used|(?m)^(\S+: )?\d+:\d+: `)
	// The script does something else after a failure.
	handlesFailure = regexp.MustCompile(`\|\||!|\bif\b|\belse\b|\bwhile\b`)
	mistake        = regexp.MustCompile(`syntax error|eval: -.: invalid option|unexpected EOF|division by 0|error token|bad substitution|bad array subscript|substring expression|readonly variable|not a valid identifier|cannot unset|cannot assign|ambiguous redirect|no job control|readonly function|conditional`)
	inExpansion    = regexp.MustCompile("(?s)\\$\\{[^}]*[-:=+#%/^,@][^}]*(\\$\\(|`)")
	inCondition    = regexp.MustCompile("(?s)\\[\\[.*(\\|\\||&&).*(\\$\\(|`).*\\]\\]")
	inIndex        = regexp.MustCompile(`\[\\?\$\(`)
	hidden         = regexp.MustCompile(`2>&1|&>|\|&|>&2`)
	calculates     = regexp.MustCompile(`\(\(|-(eq|ne|lt|le|gt|ge)\b`)
	inDefault      = regexp.MustCompile("\\$\\{[^}]*[-+=][\"'$]")
	assigned       = regexp.MustCompile(`(?s)=.*\$\(.*[<>]`)
	quotedPattern  = regexp.MustCompile(`\$\{\w+[#%][^}]*"`)
	messageAsWord  = regexp.MustCompile("(?s)(\\$\\(|`).*(2>&1|&>|\\|&)|(2>&1|&>).*\\||\\|&")
	endedReader    = regexp.MustCompile(`(?s)\b(echo|printf|pwd|type)\b.*\|&?[\s({!]*(\w+\+?=|\(\(|\[|(:|true|false|exit|return|break|continue|cd|echo|printf|pwd|set|shift|unset|export|readonly|declare|local|test|wait|type|trap)\b)`)
	shifts         = regexp.MustCompile(`\bshift\b`)
	otherGrammar   = regexp.MustCompile(`(?s)\beval\b.*\\\d|\)#|\balias\b`)
	unopened       = regexp.MustCompile(`(?m)^open `)
	ofProcess      = regexp.MustCompile(`\$\{@:|\$[$!0]|\b(RANDOM|SRANDOM|LINENO|PPID|HOSTNAME|OLDPWD)\b`)
	ofRoot         = regexp.MustCompile(`/proc/|/["'}]?[*?]|(?s)\bc.*d\s+/.*\*`)
	listing        = regexp.MustCompile(`@Q\}|\b(set|declare|typeset|export|readonly|alias|type|command -v|which|jobs|help|times|time|ulimit)\b`)
)

// excused returns the class of a difference that is harmless, or "".
func excused(script string, bash, ours outcome) string {
	if ours.stuck {
		return ""
	}
	script = strings.ReplaceAll(script, "\\\n", "")
	for _, class := range classes {
		if class.harmless(script, bash, ours) {
			return class.name
		}
	}
	return ""
}

// programs returns the first word of each call.
func programs(o outcome) (names []string) {
	for _, call := range o.calls {
		name, _, _ := strings.Cut(call, " ")
		names = append(names, strings.Trim(name, "[]"))
	}
	slices.Sort(names)
	return names
}

// isPart reports whether all of part is in whole.
func isPart(part, whole []string) bool {
	counts := map[string]int{}
	for _, one := range whole {
		counts[one]++
	}
	for _, one := range part {
		counts[one]--
		if counts[one] < 0 {
			return false
		}
	}
	return true
}
