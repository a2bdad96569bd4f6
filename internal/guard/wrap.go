package guard

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// inner judges the command that another command runs.
func (j *judge) inner(kind string, words []Word, got given, command Command) error {
	*j.printed = Anything
	within := Command{Words: words, Dir: command.Dir, Stdin: command.Stdin, Repeated: command.Repeated}
	switch kind {
	case kindCommand:
		return j.run(within)
	case kindEnv:
		return j.env(within)
	case kindXargs:
		within.Words = xargsWords(words, got, command.Stdin)
		within.Repeated, within.Stdin = true, Nothing
		return j.run(within)
	case kindElsewhere:
		within.Dir = Word(anyText)
		err := j.elsewhere().run(within)
		*j.printed = Anything // the output of a program there is unknown
		return err
	case kindScript, kindPOSIXScript:
		return j.script(words, command, kind == kindPOSIXScript)
	case kindRemoteScript:
		texts := make([]string, 0, len(words))
		for _, word := range words {
			text, known := word.Known()
			if !known {
				return unclear(word.String()+" in a command for another host", "write it out")
			}
			texts = append(texts, text)
		}
		return j.elsewhere().walk(strings.Join(texts, " "), Word(anyText))
	}
	return denied("the type %s cannot be judged", kind)
}

// elsewhere returns a judge for commands on another host or in a container.
func (j *judge) elsewhere() *judge {
	there := *j
	there.remote = true
	there.place = Place{Path: j.place.Path, Doors: j.place.Doors} // the directories and variables there are unknown
	return &there
}

// env judges `env NAME=value … COMMAND`.
func (j *judge) env(command Command) error {
	for len(command.Words) > 0 {
		text := command.Words[0].Start()
		name, _, is := strings.Cut(text, "=")
		if !is || !isName(name) {
			break
		}
		command.Env = append(command.Env, command.Words[0])
		command.Words = command.Words[1:]
	}
	if len(command.Words) == 0 {
		return denied("env without a command shows the environment")
	}
	return j.run(command)
}

// xargsWords returns the words of the command that xargs runs. Normally the input is appended to the command. With -I,
// and without -n or -L, the input replaces the mark, which is usually {}.
func xargsWords(words []Word, got given, stdin Output) []Word {
	several, one := Word(anyWords), Word(anyText)
	if stdin == Items {
		several, one = Word(anyItems), Word(anyItem)
	}
	if !got.flags["-I"] || got.flags["-n"] || got.flags["-L"] || got.flags["--max-args"] {
		return append(slices.Clone(words), several)
	}
	mark := Word("{}")
	for _, value := range got.values {
		if value.kind == kindMark {
			mark = value.word
		}
	}
	replaced := make([]Word, 0, len(words))
	for _, word := range words {
		replaced = append(replaced, Word(strings.ReplaceAll(string(word), string(mark), string(one))))
	}
	return replaced
}

// script judges `bash -c SCRIPT [NAME [ARGUMENT…]]`.
func (j *judge) script(words []Word, command Command, posix bool) error {
	text, known := words[0].Known()
	if !known {
		return unclear("a script with "+words[0].String()+" in it", "put the script into single quotes")
	}
	if len(words) > 1 {
		return unclear("arguments of a script", "write them into the script")
	}
	if posix { // sh can be another shell than bash: refuse syntax that they interpret differently
		if found := bashOnly.FindString(strings.ReplaceAll(text, "\\\n", "")); found != "" {
			return unclear(strconv.Quote(found)+" in a script for sh", "use bash -c")
		}
	}
	return j.walk(text, command.Dir)
}

// bashOnly matches syntax that bash and other shells interpret differently.
var bashOnly = regexp.MustCompile(
	`\$'|\$"|\[\[|\(\(|[<>]\(|&>|\|&|<<<|>&[^0-9-]|\{[^}]*[,.][^}]*\}|\b(function|select|time|let)\b|\w\[|\+=|=\(`)

// walk judges a script within a call.
func (j *judge) walk(script string, dir Word) error {
	known, ok := dir.Known()
	if !ok {
		known = string(rune(anyText))
	}
	return Walk(script, j.environmentIn(known), j)
}

// The types of arguments that the code treats specially.
const (
	kindCommand      = "COMMAND"       // a command: timeout 5 COMMAND
	kindEnv          = "ENV_COMMAND"   // a command with assignments in front of it
	kindXargs        = "XARGS_COMMAND" // a command to which xargs adds words
	kindElsewhere    = "THERE_COMMAND" // a command in a container
	kindScript       = "SCRIPT"        // a script for bash, in one word
	kindPOSIXScript  = "SH_SCRIPT"     // a script for sh, in one word
	kindRemoteScript = "THERE_SCRIPT"  // a shell script for another host
	kindExec         = "EXEC"          // the command of find -exec
	kindMark         = "MARK"          // the text that xargs -I replaces
	kindDir          = "CHDIR"         // the directory that a program changes to
)

func wrapping(kind string) bool {
	return slices.Contains([]string{kindCommand, kindEnv, kindXargs, kindElsewhere, kindScript, kindPOSIXScript, kindRemoteScript}, kind)
}
