package guard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// opens judges a file that a program's text names.
type opens func(name string, write bool) error

var (
	// awkForbidden matches what runs programs, shows the environment, or calls a function whose name is in a variable.
	awkForbidden = regexp.MustCompile(`\bsystem\s*\(|\b(PROCINFO|ENVIRON|SYMTAB|FUNCTAB)\b|@\s*[A-Za-z_]`)
	// awkToken matches a token with the blanks and comments in front of it. Its group is the token.
	awkToken = regexp.MustCompile(`^(?:[ \t\r]|\\\r?\n|#[^\n]*)*("(?:[^"\\\n]|\\(?s:.))*"|\w+|\|\||\+\+|--|>>|(?s:.))?`)
	// awkPattern matches the rest of a pattern after its first slash. Awks differ in whether a slash in brackets ends it.
	awkPattern = regexp.MustCompile(`^(?:[^/\\\n[]|\\.|\[\^?\]?(?:[^]/\\\n]|\\.)*\])*/`)
	// awkFile matches a file's name in full behind the > of a print.
	awkFile = regexp.MustCompile(`^[ \t]*"([^"\\\n]+)"[ \t\r]*(?:[;\n}#]|$)`)
)

// checkAWK accepts an awk program that runs no other program, and writes only to files that it names in full and the tier may write.
// A computed name could also be a connection (/inet of gawk).
func checkAWK(text string, open opens) error {
	for _, joint := range []string{"", " "} { // what stands for a line break with a backslash
		if found := awkForbidden.FindString(strings.ReplaceAll(text, "\\\n", joint)); found != "" {
			return denied("awk: %q runs programs or shows the environment", strings.TrimSpace(found))
		}
	}
	a := awkScript{text: text, printing: -1, open: open}
	for a.text != "" {
		found := awkToken.FindStringSubmatch(a.text)
		a.text = a.text[len(found[0]):]
		if err := a.token(found[1]); err != nil {
			return err
		}
	}
	return nil
}

// awkScript is the rest of an awk program.
type awkScript struct {
	text string
	// last is the token before, and brackets holds for each open bracket the token in front of it.
	last     string
	brackets []string
	// printing is the number of brackets around a print that has not ended; -1 outside of one.
	printing int
	open     opens
}

func (a *awkScript) token(token string) error {
	before := a.last
	a.last = token
	switch token {
	case `"`:
		return denied("awk: a string does not end")
	case "|":
		return denied("awk: | runs a program; pipe its output in the script: awk … | sort")
	case "/":
		return a.slash(before)
	case "print", "printf":
		a.printing = len(a.brackets)
	case "(", "[", "{":
		a.brackets = append(a.brackets, before)
	case ")", "]", "}":
		return a.closed()
	case ">", ">>":
		return a.target()
	case ";":
		a.printing = -1
	case "\n":
		if awkValue(before) || before == "print" {
			a.printing = -1
		}
	}
	return nil
}

// slash reads a pattern, or a division.
func (a *awkScript) slash(before string) error {
	if awkValue(before) {
		return nil
	}
	pattern := awkPattern.FindString(a.text)
	if pattern == "" || before == "length" {
		return denied(`awk: this pattern cannot be read: write \/ for a slash in brackets, and length()`)
	}
	a.text, a.last = a.text[len(pattern):], `"`
	return nil
}

// closed ends a bracket. After the condition of an if, a statement begins.
func (a *awkScript) closed() error {
	last := len(a.brackets) - 1
	if last < 0 {
		return denied("awk: a bracket is closed that was not opened")
	}
	if slices.Contains([]string{"if", "while", "for", "switch"}, a.brackets[last]) {
		a.last = ""
	}
	if a.brackets = a.brackets[:last]; last < a.printing {
		a.printing = -1
	}
	return nil
}

// target judges the file after the > of a print.
func (a *awkScript) target() error {
	if a.printing != len(a.brackets) {
		return nil
	}
	if file := awkFile.FindStringSubmatch(a.text); file != nil {
		return a.open(file[1], true)
	}
	return denied("awk: > after print writes a file: write its name out in quotes, and a comparison in parentheses: print ($1 > 5)")
}

// awkValue reports whether a value can end with the token, so that a slash after it divides.
func awkValue(token string) bool {
	if slices.Contains([]string{"length", "print", "printf", "return", "in", "else", "do", "exit", "delete", "case"}, token) {
		return false
	}
	return awkEnd.MatchString(token)
}

var awkEnd = regexp.MustCompile(`(?s)^(\w+|".*|[)\]]|\+\+|--)$`)

var (
	jqString = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	jqKey    = regexp.MustCompile(`\{\s*env\s*([:,}])`)
	jqEnv    = regexp.MustCompile(`\$\s*ENV\b|(^|\.\.|[^.\w$])env\b`)
	// jqUnsure matches comments and parts of strings, in which a quote need not begin or end a string.
	jqUnsure = regexp.MustCompile(`#|\\\(`)
)

// checkJQ accepts a program of jq that does not show the environment.
func checkJQ(text string) error {
	if jqUnsure.MatchString(text) {
		if strings.Contains(text, "ENV") || jqEnv.MatchString(text) {
			return denied("jq: it may show the environment: leave out comments and \\( ), and write a key as \"env\"")
		}
		return nil
	}
	if found := jqEnv.FindString(jqKey.ReplaceAllString(jqString.ReplaceAllString(text, `""`), "{_$1")); found != "" {
		return denied("jq: %q shows the environment; write a key as \"env\"", strings.TrimSpace(found))
	}
	return nil
}

// yqForbidden matches functions of yq that show the environment, or run a text as a program.
var yqForbidden = regexp.MustCompile(`env\s*\(|envsubst|eval\s*\(`)

// checkYQ accepts a program of yq, which can be that of Go or a jq with YAML. A word that begins otherwise would be a command of yq.
func checkYQ(text string) error {
	if text == "" || strings.IndexByte(`.([{"`, text[0]) < 0 {
		return denied("begin the expression with a dot, as in '.services'")
	}
	if found := yqForbidden.FindString(text); found != "" {
		return denied("yq: %q shows the environment or runs a text", found)
	}
	return checkJQ(text)
}

// checkSED accepts a sed script that runs no other program, and reads and writes only files that the tier may. Versions of sed differ
// in whether a delimiter within brackets ends a pattern, so the script is read both ways. A version that cannot read it does nothing.
func checkSED(text string, open opens) error {
	inBrackets := sedScript{text, open, true}
	if _, err := inBrackets.read(); err != nil {
		return err
	}
	if readable, err := (&sedScript{text, open, false}).read(); readable {
		return err
	}
	return nil
}

// sedScript is the rest of a sed script.
type sedScript struct {
	text string
	open opens
	// brackets means that a delimiter within brackets does not end a pattern.
	brackets bool
}

var (
	sedWord  = regexp.MustCompile(`^\w`)
	sedBlank = regexp.MustCompile(`^[ \t\n;{}]*`)
	// sedAddress matches a part of the addresses of a command up to the delimiter of a pattern.
	sedAddress = regexp.MustCompile(`^[ \t]*(?:[0-9$~+,!]|(/|\\[^\\\n]))`)
	sedPlain   = regexp.MustCompile(`^[ \t!]*(?:[pdqQnNDPhHgGxlzF=][0-9 \t]*(?:[;\n}{]|#[^\n]*|$)|#[^\n]*|[:btT] *[^ \t\n;}]*|` +
		`[aic][^\\\n]*$)`)
	sedFile  = regexp.MustCompile(`^([rRwW])[ \t]*([^\\;}\n]+)(?:\n|$)`)
	sedFlags = regexp.MustCompile(`^[gpiIMm0-9]*([ \t]*(?:[;\n}{]|#[^\n]*|$)|w[ \t]*([^\\;}\n]+)(?:\n|$)|e)?`)
)

// read judges the commands of the script. It returns false if no sed reads the script.
func (s *sedScript) read() (readable bool, err error) {
	for {
		s.skip(sedBlank)
		if s.text == "" {
			return true, nil
		}
		if readable, err := s.command(); err != nil {
			return readable, err
		}
	}
}

// skip leaves out what matches, and returns the groups of the match; nil if there is none.
func (s *sedScript) skip(pattern *regexp.Regexp) []string {
	found := pattern.FindStringSubmatch(s.text)
	if found != nil {
		s.text = s.text[len(found[0]):]
	}
	return found
}

func (s *sedScript) command() (readable bool, err error) {
	for address := s.skip(sedAddress); address != nil; address = s.skip(sedAddress) {
		if delimiter := address[1]; delimiter != "" {
			if readable, err := s.part(delimiter[len(delimiter)-1:], true); err != nil {
				return readable, err
			}
			s.text = strings.TrimLeft(s.text, "IM")
		}
	}
	if s.text == "" || s.text[0] == '{' || s.skip(sedPlain) != nil {
		return true, nil
	}
	s.text = strings.TrimLeft(s.text, " \t")
	if file := s.skip(sedFile); file != nil {
		return true, s.open(file[2], file[1] == "w" || file[1] == "W")
	}
	if len(s.text) < 2 || s.text[0] != 's' && s.text[0] != 'y' {
		return sedWord.MatchString(s.text), denied("sed: %.20q may run a program, or cannot be read", s.text)
	}
	command, delimiter := s.text[0], s.text[1:2]
	s.text = s.text[2:]
	for _, pattern := range []bool{command == 's', false} {
		if readable, err := s.part(delimiter, pattern); err != nil {
			return readable, err
		}
	}
	flags := s.skip(sedFlags)
	switch {
	case strings.HasPrefix(flags[1], "w"):
		return true, s.open(flags[2], true)
	case flags[1] == "e":
		return true, denied("sed: the flag e of s runs a program")
	case flags[1] == "" && s.text != "":
		return false, denied("sed: %.20q after a command cannot be read", s.text)
	}
	return true, nil
}

// part reads text up to the delimiter. Brackets in a pattern can contain the delimiter, unless they contain what versions of sed read
// differently.
func (s *sedScript) part(delimiter string, pattern bool) (readable bool, err error) {
	if strings.ContainsAny(delimiter, "\n\\[]^") || delimiter[0] > '~' {
		return true, denied("sed: %q cannot be read as a delimiter", delimiter)
	}
	d := fmt.Sprintf(`\x%02x`, delimiter[0])
	text := `(?:[^\\` + d + `]|\\(?s:.))*`
	if pattern && s.brackets {
		text = `(?:[^\\\n\[` + d + `]|\\.|\[\^?\]?[^\]\[\\\n]*\]|\[\^?\]?(?:\[:\w+:\]|\\[^\]\n]|[^\]\[\\\n` + d + `])*\])*`
	}
	if s.skip(regexp.MustCompile("^"+text+d)) == nil {
		return false, denied("sed: a command with %s does not end, or its brackets are unclear", delimiter)
	}
	return true, nil
}
