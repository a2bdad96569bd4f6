package guard

import (
	"errors"
	"regexp"
	"strings"
)

var errNotation = errors.New("no address")

var (
	// awkForbidden is what runs programs, reads files that no argument names, or calls what a variable names.
	awkForbidden = regexp.MustCompile(`\bsystem\s*\(|\b(getline|ARG[VC]|PROCINFO|ENVIRON|SYMTAB|FUNCTAB)\b|@\s*[A-Za-z_]|\|&`)
	awkPrint     = regexp.MustCompile(`\bprintf?\b`)
)

// checkAWK wants an AWK program that only computes and prints. It does not parse: whatever follows a print, outside of
// strings, must not redirect; and where a slash leaves open what is a string, nothing that follows may.
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

// awkOutsideStrings returns what is outside of double quotes.
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

// jqForbidden is what shows the environment or reads files, in jq and yq.
var jqForbidden = regexp.MustCompile(`\$\s*ENV\b|(^|[^.\w"$])(eval|env|strenv|envsubst|load\w*|import|include|input_filename|modulemeta)\b`)

// checkJQ wants a program of jq or yq that only works on its input.
func checkJQ(text string) error {
	if found := jqForbidden.FindString(text); found != "" {
		return denied("jq: %q shows the environment or reads files", strings.TrimSpace(found))
	}
	return nil
}

// checkSED wants a sed script of commands that only edit what passes through.
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

// sedScript is a sed script as far as it is read.
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

// line takes a command whose argument goes to the end of its line, or of the script. Labels end at a semicolon in
// some versions: what follows is looked at.
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

// end wants a command to end here.
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

// addresses takes what says on which lines a command works.
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

// part takes text up to the delimiter. A bracket expression ends it in some versions and not in others, so that
// a delimiter in one cannot be read.
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

// substitute takes s/old/new/flags. The flags e and w run and write.
func (s *sedScript) substitute() error {
	delimiter := s.next()
	if !s.part(delimiter) || !s.replacement(delimiter) {
		return denied("sed: this s command cannot be read")
	}
	s.skip("gpiIM0123456789")
	return s.end('s')
}

// replacement takes the new text of s///, in which brackets are nothing special.
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
