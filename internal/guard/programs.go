package guard

import (
	"regexp"
	"strings"
)

var (
	// awkForbidden matches constructs that run programs, read files that no argument names, show the environment, or
	// call a function whose name is in a variable.
	awkForbidden = regexp.MustCompile(`\bsystem\s*\(|\b(getline|ARG[VC]|PROCINFO|ENVIRON|SYMTAB|FUNCTAB)\b|@\s*[A-Za-z_]|\|&`)
	awkPrint     = regexp.MustCompile(`\bprintf?\b`)
)

// checkAWK accepts an AWK program that computes and prints, and does nothing else. It does not parse the program. It
// refuses > and | after a print, except within strings. If a slash or # follows the print, it cannot recognise strings.
// It then also refuses > and | within strings.
func checkAWK(text string) error {
	text = strings.ReplaceAll(text, "\\\n", "")
	if found := awkForbidden.FindString(text); found != "" {
		return denied("awk: %q runs programs or opens files", strings.TrimSpace(found))
	}
	for _, at := range awkPrint.FindAllStringIndex(text, -1) {
		rest := text[at[1]:]
		outside := awkOutsideStrings(rest)
		if strings.ContainsAny(outside, "/#") {
			outside = rest
		}
		if strings.ContainsAny(strings.ReplaceAll(outside, "||", ""), ">|") {
			return denied("awk: > or | after print writes a file or runs a program; compare in front of the print, as in $1 > 5 {print}")
		}
	}
	return nil
}

// awkOutsideStrings returns the text outside of double quotes.
func awkOutsideStrings(text string) string {
	var outside strings.Builder
	inside := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case !inside:
			outside.WriteByte(c)
		}
	}
	return outside.String()
}

// jqForbidden matches functions of jq and yq that show the environment or read files.
var jqForbidden = regexp.MustCompile(`\$\s*ENV\b|(^|[^.\w"$])(eval|env|strenv|envsubst|load\w*|import|include|input_filename|modulemeta)\b`)

// checkJQ accepts a program of jq or yq that uses its input and nothing else.
func checkJQ(text string) error {
	if found := jqForbidden.FindString(text); found != "" {
		return denied("jq: %q shows the environment or reads files", strings.TrimSpace(found))
	}
	return nil
}

// checkSED accepts a sed script whose commands edit their input and do nothing else.
func checkSED(text string) error {
	s := &sedScript{text: text}
	for {
		s.skip(" \t\n;{}")
		if s.done() {
			return nil
		}
		if err := s.command(); err != nil {
			return err
		}
	}
}

// sedScript is a sed script and the index of the next byte to read.
type sedScript struct {
	text string
	at   int
}

func (s *sedScript) done() bool { return s.at >= len(s.text) }

func (s *sedScript) skip(set string) {
	for !s.done() && strings.IndexByte(set, s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *sedScript) next() byte {
	if s.done() {
		return 0
	}
	s.at++
	return s.text[s.at-1]
}

func (s *sedScript) command() error {
	if err := s.addresses(); err != nil {
		return err
	}
	s.skip(" \t!")
	switch c := s.next(); c {
	case 'p', 'd', 'q', 'Q', 'n', 'N', 'D', 'P', 'h', 'H', 'g', 'G', 'x', 'l', '=', '{', '}', 'z', 'F':
		s.skip("0123456789 \t")
		return s.end(c)
	case 's':
		return s.substitute()
	case 'y':
		delimiter := s.next()
		if before := s.part(delimiter); !before || !s.part(delimiter) {
			return denied("sed: this y command cannot be read")
		}
		return s.end(c)
	case ':', 'b', 't', 'T':
		s.skip(" ")
		return s.line(c)
	case '#', 'a', 'i', 'c':
		return s.line(c)
	default:
		return denied("sed: the command %q may read or write files, or run programs", string(c))
	}
}

// line reads a command whose argument extends to the end of the line or of the script. In some versions of sed, a label
// also ends at a blank, a semicolon or a closing brace. So line ends a label at these characters, and the text after
// the label is checked as commands.
func (s *sedScript) line(c byte) error {
	switch c {
	case '#':
		for !s.done() && s.text[s.at] != '\n' {
			s.at++
		}
	case 'a', 'i', 'c':
		if strings.ContainsAny(s.text[s.at:], "\\\n") {
			return denied("sed: %q with several lines cannot be read; give it one", string(c))
		}
		s.at = len(s.text)
	default:
		for !s.done() && !strings.ContainsRune(" \t\n;}", rune(s.text[s.at])) {
			s.at++
		}
	}
	return nil
}

// end checks that the command c ends at the current position.
func (s *sedScript) end(c byte) error {
	s.skip(" \t")
	if s.done() || strings.IndexByte(";\n}{#", s.text[s.at]) >= 0 {
		return nil
	}
	if c == '{' || c == '}' {
		return nil
	}
	return denied("sed: %q after the command %q cannot be read", s.text[s.at], string(c))
}

// addresses reads the line addresses in front of a command.
func (s *sedScript) addresses() error {
	for {
		s.skip(" \t")
		if s.done() {
			return nil
		}
		switch c := s.text[s.at]; {
		case c >= '0' && c <= '9', c == '$', c == '~', c == '+', c == ',':
			s.at++
		case c == '/', c == '\\':
			s.at++
			if c == '\\' {
				c = s.next()
			}
			if !s.part(c) {
				return denied("sed: an address does not end")
			}
			s.skip("IM")
		default:
			return nil
		}
	}
}

// part reads text up to the delimiter. It refuses a delimiter within a bracket expression, because some versions of sed
// end the text there and others do not.
func (s *sedScript) part(delimiter byte) bool {
	if delimiter == 0 || delimiter == '\n' || delimiter == '\\' {
		return false
	}
	bracket := false
	for !s.done() {
		switch c := s.next(); {
		case c == '\\':
			s.next()
		case c == delimiter && bracket:
			return false
		case c == delimiter:
			return true
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case c == '\n':
			return false
		}
	}
	return false
}

// substitute reads s/old/new/flags. It refuses the flag e, which runs a program, and the flag w, which writes a file.
func (s *sedScript) substitute() error {
	delimiter := s.next()
	if !s.part(delimiter) || !s.replacement(delimiter) {
		return denied("sed: this s command cannot be read")
	}
	s.skip("gpiIM0123456789")
	return s.end('s')
}

// replacement reads the new text of s///, in which brackets have no special meaning.
func (s *sedScript) replacement(delimiter byte) bool {
	for !s.done() {
		switch c := s.next(); c {
		case '\\':
			s.next()
		case delimiter:
			return true
		}
	}
	return false
}
