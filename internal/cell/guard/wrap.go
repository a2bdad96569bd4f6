package guard

import (
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// inner looks at the command that another program runs. A command that runs on this host is judged when it starts: the
// edits of the result put the executable that asks in front of it. A command that runs elsewhere is judged by its
// words.
func (j judge) inner(use *Use, got given, command Command, result found) (found, error) {
	for _, value := range got.values {
		if value.kind == kindExec {
			if j.remote {
				return found{}, denied("what find finds there is not known before: name the files")
			}
			result.edits = append(result.edits, edit{at: len(command.Words) - value.fromEnd})
			result.atRun = "what find finds"
			if err := j.partly(value.command, command.Dir); err != nil {
				return found{}, err
			}
		}
	}
	kind, inner := use.form.wrapped(got.args)
	if inner == nil {
		return result, nil
	}
	at := len(command.Words) - len(inner)
	switch kind {
	case kindEnv:
		assignments := slices.IndexFunc(inner, func(word string) bool { return !strings.Contains(word, "=") })
		if assignments < 0 {
			return found{}, denied("env without a command shows the environment")
		}
		command.Set = append(command.Set, inner[:assignments]...)
		return j.started(command, at+assignments, false, result)
	case kindCommand, kindXargs:
		return j.started(command, at, kind == kindXargs, result)
	case kindScript, kindPOSIXScript:
		script := Script{Text: inner[0], Params: inner[1:], POSIX: kind == kindPOSIXScript, Options: scriptOptions(got)}
		result.script = &script
		read, err := j.deeper().preview(script.Text, command.Dir, script.variant())
		return result.and(read), err
	case kindOther:
		return j.other(command, at, result)
	case kindElsewhere:
		there, err := j.elsewhere().run(Command{Words: inner, Dir: unknownDir})
		for _, e := range there.edits {
			result.edits = append(result.edits, e.moved(at))
		}
		if there.script != nil {
			return j.sent(result, *there.script, len(command.Words)-len(inner)+slices.Index(inner, there.script.Text))
		}
		return result.and(there), err
	case kindRemoteScript:
		if len(inner) > 1 && !j.limits().Anything {
			return found{}, denied("put the script for the other host into one word")
		}
		return j.sent(result, Script{Text: strings.Join(inner, " ")}, at)
	}
	return found{}, denied("the type %s cannot be judged", kind)
}

// started puts the executable that asks in front of the command at an index. A command that is certain to be denied is
// denied at once.
func (j judge) started(command Command, at int, more bool, result found) (found, error) {
	if j.remote {
		return j.startedThere(command, at, more, result)
	}
	result.edits = append(result.edits, edit{at: at})
	inner := Command{Words: command.Words[at:], Set: command.Set, Dir: command.Dir}
	if more {
		result.atRun = "what xargs reads"
		return result, j.partly(inner.Words, inner.Dir)
	}
	read, err := j.deeper().run(inner)
	if errors.Is(err, errAtRun) {
		result.atRun, err = "the directory in which "+inner.Words[0]+" runs", nil
	}
	read.actions = nil // they are charged when the command starts
	return result.and(read), err
}

// startedThere judges a command that a program starts in a container or on another host. Our executable is not there to
// ask, so the words decide.
func (j judge) startedThere(command Command, at int, more bool, result found) (found, error) {
	if more {
		return found{}, denied("what xargs reads decides what runs there: write it out")
	}
	there, err := j.deeper().run(Command{Words: command.Words[at:], Set: command.Set})
	if err != nil {
		return found{}, err
	}
	for _, e := range there.edits {
		result.edits = append(result.edits, e.moved(at))
	}
	result.script = there.script
	return result.and(there), nil
}

// other judges a command that another user runs. A program of that user cannot ask the worker, so the words decide.
func (j judge) other(command Command, at int, result found) (found, error) {
	inner, err := j.deeper().run(Command{Words: command.Words[at:], Dir: command.Dir})
	switch {
	case err != nil:
		return found{}, err
	case slices.ContainsFunc(inner.edits, func(e edit) bool { return e.text == "" && e.added == nil }):
		return found{}, denied("%s starts commands as another user: put it in front, as in xargs sudo",
			command.Words[at])
	case inner.script != nil:
		canonical, err := render(inner.script.Text)
		if err != nil {
			return found{}, err
		}
		result.edits = append(result.edits, edit{
			at:   at + slices.Index(command.Words[at:], inner.script.Text),
			text: canonical,
		})
	}
	for _, e := range inner.edits {
		result.edits = append(result.edits, e.moved(at))
	}
	return result.and(inner), nil
}

// deeper returns the judge for a script or a command within a command.
func (j judge) deeper() judge {
	j.depth++
	return j
}

// elsewhere returns a judge for commands on another host or in a container.
func (j judge) elsewhere() judge {
	there := j.deeper()
	there.remote = true
	there.place = Place{Path: j.place.Path, Doors: j.place.Doors, Home: unknownDir}
	return there
}

// unknownDir stands for the directory in which commands of a container start. It is read like a home.
const unknownDir = "/…"

// sent judges a script that a shell on another host or in a container will run. That shell has another grammar than the
// guard, so it gets the script as the guard has read it. The argument at is the index of the word with the script; the
// words after it are part of the script.
func (j judge) sent(result found, script Script, at int) (found, error) {
	there := j
	if !there.remote {
		there = j.elsewhere()
	}
	read, err := there.preview(script.Text, unknownDir, syntax.LangPOSIX)
	if err == nil && read.atRun != "" && !j.limits().Anything {
		err = denied("%s decides what the script does there: write everything out", read.atRun)
	}
	if err != nil {
		return found{}, err
	}
	canonical, err := render(script.Text)
	if err != nil {
		return found{}, err
	}
	if canonical == "" {
		canonical = ":"
	}
	result.edits = append(result.edits, edit{at: at, text: canonical})
	return result.and(read), nil
}

func (s Script) variant() syntax.LangVariant {
	if s.POSIX {
		return syntax.LangPOSIX
	}
	return syntax.LangBash
}

// scriptOptions returns the options of bash -c that change how the script runs.
func scriptOptions(got given) (options []string) {
	for _, option := range []string{"-e", "-u", "-x"} {
		if got.flags[option] {
			options = append(options, option)
		}
	}
	for _, value := range got.values {
		if value.word == "pipefail" {
			options = append(options, "-o", "pipefail")
		}
	}
	return options
}

// The types of arguments that the code treats specially.
const (
	kindCommand      = "COMMAND"       // a command: timeout 5 COMMAND
	kindEnv          = "ENV_COMMAND"   // a command with assignments in front of it
	kindOther        = "OTHER_COMMAND" // a command as another user, which cannot ask: sudo COMMAND
	kindXargs        = "XARGS_COMMAND" // a command to which xargs adds words
	kindElsewhere    = "THERE_COMMAND" // a command in a container
	kindScript       = "SCRIPT"        // a script for bash, in one word
	kindPOSIXScript  = "SH_SCRIPT"     // a script for sh, in one word
	kindRemoteScript = "THERE_SCRIPT"  // a shell script for another host
	kindExec         = "EXEC"          // the command of find -exec
	kindMark         = "MARK"          // the text that xargs -I replaces
	kindDir          = "CHDIR"         // the directory that a program changes to
)

// wrappingKinds are the types of commands and scripts within a command.
var wrappingKinds = []string{
	kindCommand, kindEnv, kindOther, kindXargs, kindElsewhere, kindScript, kindPOSIXScript, kindRemoteScript,
}

func wrapping(kind string) bool { return slices.Contains(wrappingKinds, kind) }
