package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtin checks a call of one of bash's builtin commands.
type builtin func(s *shell, words []Word, redirects []*syntax.Redirect) error

// builtins maps the names of bash's builtin commands to their checks. It also has an entry for every refused builtin.
// Without the entry the guard would take the name for a program, but bash runs the builtin.
var builtins map[string]builtin

func init() { //nolint:gochecknoinits // breaks an initialization cycle between the table and its functions
	harmless := func(*shell, []Word, []*syntax.Redirect) error { return nil }
	builtins = map[string]builtin{
		":": readNothing, "true": readNothing, "false": readNothing, "echo": readEcho, "pwd": harmless, "type": harmless,
		"exit": harmless, "return": harmless, "break": harmless, "continue": harmless, "wait": readPlain, "times": harmless,
		"[": readTest, "test": readTest, "printf": readPrintf, "cd": readCd, "ulimit": readUlimit, "read": readRead, "set": readSet,
		"command": readCommand, "builtin": readCommand, "eval": readEval, "exec": readExec,
	}
	for _, name := range []string{
		".", "source", "shift", "unset", "alias", "unalias", "bg", "fg", "jobs", "bind", "caller",
		"compgen", "complete", "compopt", "dirs", "disown",
		"enable", "export", "declare", "typeset", "local", "readonly", "fc", "getopts", "hash", "history", "let", "logout",
		"mapfile", "readarray", "popd", "pushd", "shopt", "suspend", "trap", "umask", "coproc",
	} {
		builtins[name] = refuseBuiltin
	}
}

func refuseBuiltin(_ *shell, words []Word, _ []*syntax.Redirect) error {
	return unclear(words[0].String(), "write the commands themselves")
}

// readNothing accepts a builtin that prints nothing.
func readNothing(s *shell, _ []Word, _ []*syntax.Redirect) error {
	s.output = Nothing
	return nil
}

// readEcho accepts echo. Without arguments, echo prints an empty line and nothing else.
func readEcho(s *shell, words []Word, _ []*syntax.Redirect) error {
	if len(words) == 1 {
		s.output = Nothing
	}
	return nil
}

// plainNames returns the arguments of a builtin that are not options. Each of them must be the known name of a variable
// that the script is permitted to set.
func (s *shell) plainNames(words []Word, options string) ([]string, error) {
	var names []string
	for _, word := range words[1:] {
		name, known := word.Known()
		switch {
		case known && strings.HasPrefix(name, "-") && len(name) > 1 && strings.Trim(name[1:], options) == "":
		case known && isName(name) && s.maySet(name):
			names = append(names, name)
		default:
			return nil, unclear(words[0].String()+" "+word.String(), "use plain names of variables")
		}
	}
	return names, nil
}

func readPlain(_ *shell, words []Word, _ []*syntax.Redirect) error {
	for _, word := range words[1:] {
		if strings.Trim(string(word), "0123456789"+string(rune(anyNumber))) != "" {
			return unclear(words[0].String()+" "+word.String(), "leave it out")
		}
	}
	return nil
}

// readTest checks the words of a [ or test command. It refuses -v and -R, because bash evaluates a subscript in their
// operand. It also refuses unknown words where bash could read an operator. The number of words determines where that
// is.
func readTest(_ *shell, words []Word, _ []*syntax.Redirect) error {
	operands := words[1:]
	if words[0] == "[" && len(operands) > 0 && operands[len(operands)-1] == "]" {
		operands = operands[:len(operands)-1]
	}
	if len(operands) > 0 && operands[0] == "!" {
		operands = operands[1:]
	}
	operator := 0 // index of the operator, which must be known
	if len(operands) == 3 {
		operator = 1
	}
	for i, word := range operands {
		_, known := word.Known()
		wrong := word == "-v" || word == "-R" || word.Many()
		unknown := !known && (len(operands) == 2 && i == operator || len(operands) == 3 && i == operator || len(operands) > 3)
		if wrong || unknown {
			return unclear(words[0].String()+" with "+word.String(),
				`put variables into double quotes, compare two at a time, and use [ -n "${NAME:-}" ]`)
		}
	}
	return nil
}

func readPrintf(_ *shell, words []Word, _ []*syntax.Redirect) error {
	if len(words) > 1 && words[1].MayBeOption() && words[1] != "--" {
		return unclear("printf with the option "+words[1].String(), `begin with a format, as in printf '%s\n' …`)
	}
	return nil
}

func readCd(s *shell, words []Word, _ []*syntax.Redirect) error {
	if len(words) != 2 {
		return unclear("cd without one directory", "name it")
	}
	dir, known := words[1].Known()
	if !known || dir == "-" || dir == "" || strings.HasPrefix(dir, "-") {
		return unclear("cd "+words[1].String(), "name the directory")
	}
	if err := s.visitor.Open(Access{Path: words[1], Dir: s.dir, Enter: true}); err != nil {
		return err
	}
	if strings.HasPrefix(dir, "/") {
		s.dir = words[1]
	} else {
		s.dir += "/" + words[1]
	}
	return nil
}

func readRead(s *shell, words []Word, _ []*syntax.Redirect) error {
	names, err := s.plainNames(words, "r")
	if err != nil {
		return err
	}
	value := Word(anyText)
	if s.stdin == Items && len(names) == 1 {
		value = Word(anyItem)
	}
	for _, name := range append(names, "REPLY") {
		s.vars[name] = value
		delete(s.arrays, name)
	}
	return nil
}

// readUlimit accepts ulimit if the call shows limits and sets none.
func readUlimit(_ *shell, words []Word, _ []*syntax.Redirect) error {
	for _, word := range words[1:] {
		if option, known := word.Known(); !known || !strings.HasPrefix(option, "-") {
			return unclear("ulimit "+word.String(), "show limits only, as in ulimit -n")
		}
	}
	return nil
}

// readSet accepts the options that make a script stop at errors.
func readSet(s *shell, words []Word, _ []*syntax.Redirect) error {
	if len(words) == 1 {
		return unclear("set, which shows all variables,", "name the variable")
	}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-e", "-eu", "-ue", "-eo", "-euo":
			s.strict = true
		case "+e":
			s.strict = false
		case "-u", "+u", "-f", "+f", "pipefail", "-o", "+o", "-x", "+x":
		default:
			return unclear("set "+words[i].String(), "use set -euo pipefail, or none")
		}
	}
	return nil
}

// readCommand checks `command X` and `builtin X` as calls of X. This is so even if there is a shell function X.
func readCommand(s *shell, words []Word, redirects []*syntax.Redirect) error {
	if len(words) > 1 && (words[1] == "-v" || words[1] == "-V") {
		return nil
	}
	if len(words) == 1 {
		return nil
	}
	name, known := words[1].Known()
	if !known || strings.HasPrefix(name, "-") {
		return unclear("command "+words[1].String(), "leave command out")
	}
	if inner, is := builtins[name]; is {
		return inner(s, words[1:], redirects)
	}
	return s.run(Command{Words: words[1:]})
}

// readEval reads the script that is passed to eval.
func readEval(s *shell, words []Word, _ []*syntax.Redirect) error {
	var script []string
	for _, word := range words[1:] {
		text, known := word.Known()
		if !known {
			return unclear("eval of "+word.String(), "write the commands themselves")
		}
		script = append(script, text)
	}
	err := s.script(strings.Join(script, " "))
	s.output = Anything
	return err
}

// readExec checks `exec PROGRAM` as a call of the program. Without a program, exec applies its redirections and runs
// nothing.
func readExec(s *shell, words []Word, redirects []*syntax.Redirect) error {
	if len(words) == 1 {
		for _, redirect := range redirects {
			if redirect.Op != syntax.DplOut {
				return unclear("exec with this redirection", "redirect each command")
			}
		}
		return nil
	}
	if words[1].MayBeOption() {
		return unclear("exec "+words[1].String(), "leave exec out")
	}
	return s.run(Command{Words: words[1:]})
}
