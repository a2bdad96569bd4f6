package guard

import (
	"slices"
	"strings"
)

// inner judges the command that a command runs.
func (j *judge) inner(kind string, words []Word, got given, command Command) error {
	*j.printed = Anything
	within := Command{Words: words, Dir: command.Dir, Repeated: command.Repeated}
	switch kind {
	case kindCommand:
		return j.run(within)
	case kindEnv:
		return j.env(within)
	case kindXargs:
		within.Words = appended(words, got, command.Stdin)
		within.Repeated = true
		return j.run(within)
	case kindElsewhere:
		return j.elsewhere().run(within)
	case kindScript:
		return j.script(words, command)
	case kindRemoteScript:
		texts := make([]string, 0, len(words))
		for _, word := range words {
			text, known := word.Known()
			if !known {
				return unclear(word.String()+" in a command for another host", "write it out")
			}
			texts = append(texts, text)
		}
		return j.elsewhere().walk(strings.Join(texts, " "), command.Dir)
	}
	return denied("the type %s cannot be judged", kind)
}

// elsewhere returns the judge of what runs on another host or in a container.
func (j *judge) elsewhere() *judge {
	there := *j
	there.remote = true
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

// appended returns the words of the command that xargs runs: with what it reads in the place of {}, or at the end.
func appended(words []Word, got given, stdin Output) []Word {
	several, one := Word(anyWords), Word(anyText)
	if stdin == Items {
		several, one = Word(anyItems), Word(anyItem)
	}
	if !got.flags["-I"] {
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
func (j *judge) script(words []Word, command Command) error {
	text, known := words[0].Known()
	if !known {
		return unclear("a script with "+words[0].String()+" in it", "put the script into single quotes")
	}
	if len(words) > 1 {
		return unclear("arguments of a script", "write them into the script")
	}
	return j.walk(text, command.Dir)
}

// walk judges a script within a call.
func (j *judge) walk(script string, dir Word) error {
	known, ok := dir.Known()
	if !ok {
		known = string(rune(anyText))
	}
	return Walk(script, j.environmentIn(known), j)
}

// ActionKinds of the policy.
const (
	kindCommand      = "COMMAND"       // a command: timeout 5 COMMAND
	kindEnv          = "ENV_COMMAND"   // a command with assignments in front of it
	kindXargs        = "XARGS_COMMAND" // a command that gets more words
	kindElsewhere    = "THERE_COMMAND" // a command in a container
	kindScript       = "SCRIPT"        // a shell script in one word
	kindRemoteScript = "THERE_SCRIPT"  // a shell script, for another host
	kindExec         = "EXEC"          // the command of find -exec
	kindMark         = "MARK"          // what xargs replaces
	kindDir          = "CHDIR"         // the directory that a program changes to
)

func wrapping(kind string) bool {
	return slices.Contains([]string{kindCommand, kindEnv, kindXargs, kindElsewhere, kindScript, kindRemoteScript}, kind)
}
