package guard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// words expands words to arguments. It expands braces, variables, substitutions and patterns.
func (s *shell) words(words []*syntax.Word) ([]Word, error) {
	var all []Word
	for _, word := range words {
		copied := *word
		if syntax.SplitBraces(&copied) {
			for one, err := range expand.BracesSeq(nil, &copied) {
				if err != nil {
					return nil, unclear("so many words in braces", "write fewer")
				}
				expanded, err := s.fields(one)
				if err != nil {
					return nil, err
				}
				all = append(all, expanded...)
			}
			continue
		}
		expanded, err := s.fields(word)
		if err != nil {
			return nil, err
		}
		all = append(all, expanded...)
	}
	return all, nil
}

// fields expands one word without braces to arguments.
func (s *shell) fields(word *syntax.Word) ([]Word, error) {
	if parts := word.Parts; len(parts) == 1 { // "$@" and $known
		if words, ok := s.list(parts[0]); ok {
			return words, nil
		}
	}
	if raw := word.Lit(); s.isLiteral(raw) {
		return []Word{Word(raw)}, nil
	}
	text, err := s.parts(word.Parts, unquoted)
	if err != nil {
		return nil, err
	}
	return []Word{text}, nil
}

// isLiteral reports whether bash leaves a word with brackets, such as containers[0], unchanged. bash does so if no file
// matches the word, and if the word has no other special characters.
func (s *shell) isLiteral(raw string) bool {
	dir, known := s.dir.Known()
	if !known || s.env.Matches == nil || !strings.Contains(raw, "[") || strings.ContainsAny(raw, "*?{}~\\") {
		return false
	}
	return !s.env.Matches(dir + "/" + raw)
}

// list expands a word that consists of nothing but the positional parameters, an array or a variable. It splits the
// value of a variable at blanks, tabs and line breaks. For all other words, and for unknown values, it returns false.
func (s *shell) list(part syntax.WordPart) ([]Word, bool) {
	quoted := false
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		part, quoted = q.Parts[0], true
	}
	p, ok := part.(*syntax.ParamExp)
	if !ok {
		return nil, false
	}
	if elements, is := s.allOf(p); is {
		return elements, true
	}
	if !simple(p) {
		return nil, false
	}
	name := p.Param.Value
	if name == "@" || name == "*" && !quoted {
		return s.positional(), true
	}
	if quoted {
		return nil, false
	}
	value, known := s.variable(name).Known()
	if !known || strings.ContainsAny(value, `*?[\`) {
		return nil, false
	}
	var words []Word
	for field := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }) {
		words = append(words, Word(field))
	}
	return words, true
}

// allOf returns the elements of an array for ${name[@]}.
func (s *shell) allOf(p *syntax.ParamExp) ([]Word, bool) {
	if p.Param == nil || p.Index == nil || p.Length || p.Excl || p.Exp != nil || p.Slice != nil || p.Repl != nil {
		return nil, false
	}
	if index, is := p.Index.(*syntax.Word); !is || index.Lit() != "@" {
		return nil, false
	}
	elements, known := s.arrays[p.Param.Value]
	if !known || slices.ContainsFunc(elements, func(word Word) bool { return strings.ContainsAny(string(word), " \t\n*?[") }) {
		return nil, false
	}
	return elements, true
}

func simple(p *syntax.ParamExp) bool {
	return p.Param != nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Flags == nil && p.NestedParam == nil &&
		p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil && len(p.Modifiers) == 0
}

// text expands a word that bash does not split: a value, the file of a redirection or quoted text.
func (s *shell) text(word *syntax.Word) (Word, error) {
	if word == nil {
		return "", nil
	}
	return s.parts(word.Parts, single)
}

// context states how a part of a word is expanded.
type context int

const (
	unquoted context = iota // can be split into words and matched against file names
	single                  // one word, without quotes
	quoted                  // one word, in double quotes
)

func (s *shell) parts(parts []syntax.WordPart, in context) (Word, error) {
	var all strings.Builder
	for i, part := range parts {
		var text Word
		var err error
		switch p := part.(type) {
		case *syntax.Lit:
			text, err = s.literal(p.Value, i == 0, len(parts) == 1, in)
		case *syntax.SglQuoted:
			text, err = singleQuoted(p)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", unclear(`$"…"`, `leave the dollar sign out`)
			}
			text, err = s.parts(p.Parts, quoted)
		case *syntax.ParamExp:
			text, err = s.parameter(p, in)
		case *syntax.CmdSubst:
			if p.TempFile || p.ReplyVar {
				return "", unclear("this kind of substitution", "use $(…)")
			}
			inner := s.fork()
			err = inner.substitution(p.Stmts)
			text = inner.printed(in, len(p.Stmts))
		case *syntax.ArithmExp:
			err = s.arithmetic(p.X)
			text = Word(anyNumber)
		case *syntax.ProcSubst:
			err = s.fork().substitution(p.Stmts)
			text = "/dev/fd/63"
		default:
			return "", unclear("this kind of pattern", "spell the names out")
		}
		if err != nil {
			return "", err
		}
		all.WriteString(string(text))
	}
	return Word(all.String()), nil
}

// substitution reads the commands of a substitution.
func (s *shell) substitution(stmts []*syntax.Stmt) error {
	return s.nested(func() error { return s.stmts(stmts) })
}

// printed returns the hole for the output of a substitution with the given number of statements.
func (s *shell) printed(in context, statements int) Word {
	switch {
	case statements == 1 && s.output == Number:
		return Word(anyNumber)
	case statements == 1 && s.output == Items && in == unquoted:
		return Word(anyItems)
	default: // within quotes, several names become one text that is no name
		return hole(in)
	}
}

func hole(in context) Word {
	if in == unquoted {
		return Word(anyWords)
	}
	return Word(anyText)
}

// literal expands literal text. It removes backslashes, replaces a leading tilde with the home directory, and replaces
// patterns with holes.
func (s *shell) literal(value string, first, alone bool, in context) (Word, error) {
	var text strings.Builder
	if in != quoted && first && strings.HasPrefix(value, "~") {
		home, rest, err := s.tilde(value)
		if err != nil {
			return "", err
		}
		text.WriteString(string(home))
		value = rest
	}
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '\\' && i+1 < len(value):
			i++
			text.WriteString(escaped(value[i:i+1], in))
		case in != quoted && c == '~' && i > 0 && (value[i-1] == '=' || value[i-1] == ':'):
			return "", unclear("~ within a word", "write the path")
		case in == unquoted && (c == '*' || c == '?'):
			text.WriteByte(anyNames)
		case in == unquoted && c == '[' && (value != "[" || !alone):
			end := bracket(value[i:])
			if end < 0 {
				return "", unclear("a bracket that does not end", "put the word into single quotes")
			}
			i += end
			text.WriteByte(anyNames)
		default:
			text.WriteByte(c)
		}
	}
	return Word(text.String()), nil
}

// escaped returns the text of a byte after a backslash.
func escaped(c string, in context) string {
	switch {
	case c == "\n":
		return ""
	case in == quoted && !strings.ContainsAny(c, "$`\"\\"):
		return `\` + c
	}
	return c
}

// bracket returns the index at which the bracket expression at the start of text ends, or a negative number.
func bracket(text string) int {
	if len(text) < 3 {
		return -1
	}
	end := strings.IndexByte(text[2:], ']')
	if end < 0 {
		return end
	}
	return 2 + end
}

// tilde expands ~ and ~/. It refuses ~USER, because the homes of other users are unknown.
func (s *shell) tilde(value string) (home Word, rest string, err error) {
	user, rest, _ := strings.Cut(value[1:], "/")
	if user != "" {
		return "", "", unclear("~"+user, "write the path")
	}
	if strings.Contains(value, "/") {
		rest = "/" + rest
	}
	return s.variable("HOME"), rest, nil
}

// singleQuoted returns the text between single quotes. In $'…' it accepts only escapes that have the same meaning in
// every shell.
func singleQuoted(q *syntax.SglQuoted) (Word, error) {
	if !q.Dollar {
		return Word(q.Value), nil
	}
	var text strings.Builder
	for i := 0; i < len(q.Value); i++ {
		c := q.Value[i]
		if c != '\\' {
			text.WriteByte(c)
			continue
		}
		i++
		if i == len(q.Value) {
			return "", unclear("$'…' that ends with a backslash", "")
		}
		plain, known := map[byte]byte{'n': '\n', 't': '\t', '\\': '\\', '\'': '\'', '"': '"'}[q.Value[i]]
		if !known {
			return "", unclear(fmt.Sprintf(`\%c in $'…'`, q.Value[i]), "use '…'")
		}
		text.WriteByte(plain)
	}
	return Word(text.String()), nil
}

// variable returns the value of a variable, with holes for unknown parts.
func (s *shell) variable(name string) Word {
	if name == "PWD" {
		return s.dir
	}
	if at, err := strconv.Atoi(name); err == nil && at > 0 && s.args != nil {
		if slices.ContainsFunc(s.args[:min(at, len(s.args))], Word.Many) {
			return Word(anyText)
		}
		if at > len(s.args) {
			return ""
		}
		return s.args[at-1].one()
	}
	if value, set := s.vars[name]; set {
		return value
	}
	if value, known := s.env.Variables[name]; known {
		return Word(value)
	}
	return Word(anyText)
}

// parameter expands $name, ${name} and the like.
func (s *shell) parameter(p *syntax.ParamExp, in context) (Word, error) {
	if p.Excl || p.Names != 0 || p.NestedParam != nil || p.Flags != nil || p.IsSet || p.Width || len(p.Modifiers) > 0 {
		return "", unclear("an indirect variable", "name the variable itself")
	}
	if _, set := s.vars[p.Param.Value]; !set && s.env.Secret != nil && s.env.Secret(p.Param.Value) {
		return "", &DeniedError{Rule: "secrets", Reason: "the value of " + p.Param.Value + " is a secret: agents do not use it"}
	}
	if p.Index != nil {
		if err := s.subscript(p.Index); err != nil {
			return "", err
		}
		if p.Length {
			return Word(anyNumber), nil
		}
		return Word(anyWords), s.expansions(p)
	}
	if p.Length {
		return Word(anyNumber), nil
	}
	if err := s.expansions(p); err != nil {
		return "", err
	}
	return s.plain(p, in), nil
}

// plain expands $name and ${name…}, with holes for unknown parts.
func (s *shell) plain(p *syntax.ParamExp, in context) Word {
	name := p.Param.Value
	if name == "@" || name == "*" && in == unquoted { // several words, even within quotes
		return Word(anyWords)
	}
	if !simple(p) {
		return hole(in)
	}
	switch name {
	case "?", "#", "$", "!":
		return Word(anyNumber)
	}
	value, known := s.variable(name).Known()
	if known && (in != unquoted || !strings.ContainsAny(value, " \t\n*?[\\")) {
		return Word(value)
	}
	if value := s.variable(name); value == Word(anyNumber) || value == Word(anyItem) {
		return value
	}
	if in != unquoted {
		return s.variable(name)
	}
	return hole(in)
}

// expansions checks the words within expansions such as ${name:-word}.
func (s *shell) expansions(p *syntax.ParamExp) error {
	if p.Slice != nil {
		for _, part := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if word, is := part.(*syntax.Word); part != nil && (!is || !isDecimal(word.Lit())) {
				return unclear("this part of a variable", "use plain numbers, as in ${x:0:5}")
			}
		}
	}
	if p.Repl != nil {
		for _, word := range []*syntax.Word{p.Repl.Orig, p.Repl.With} {
			if _, err := s.text(word); err != nil {
				return err
			}
		}
	}
	if p.Exp == nil {
		return nil
	}
	if p.Exp.Op == syntax.OtherParamOps { // ${x@P} runs commands in the value
		return unclear("${"+p.Param.Value+"@…}", "use the value itself")
	}
	if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
		if !s.maySet(p.Param.Value) {
			return s.refuseToSet(p.Param.Value)
		}
		s.vars[p.Param.Value] = Word(anyText)
	}
	_, err := s.text(p.Exp.Word)
	return err
}
