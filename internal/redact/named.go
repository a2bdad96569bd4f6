package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// relation is a way in which texts say that a value belongs to a name.
type relation int

const (
	// assigned is certain: name=value, or the element of a markup language.
	assigned relation = iota
	// told is name: value, which prose also has.
	told
	// stated is a sentence with a verb: the value must have a digit.
	stated
	// said is another sentence, or a table: the value must look like a secret.
	said
)

// link is a text between a name and its value.
type link struct {
	relation relation
	// pattern matches the text from the end of the name to the value.
	pattern *regexp.Regexp
	// passwordOnly holds for words for passwords only. quoted requires a quoted value, last that the value ends the
	// line.
	passwordOnly, quoted, last bool
	// element requires the end of an element of a markup language after the value.
	element bool
	// before reports whether the name, whose word begins at a position, stands where such a value can follow; nil for
	// any.
	before func(text string, at int) bool
}

const (
	// closers match what ends a name: quotation marks, brackets, stars, a remark.
	closers = "(?:\\\\*[\"'`\\])}*]|&quot;){0,4}(?:[ \\t]*\\([^()\\n]{0,60}\\))?"
	blanks  = `[ \t\x{a0}]*`
	element = `[^<>\n]{0,100}`
	// maxLink limits the text between a name and a value.
	maxLink = 240
)

// links lists the ways in order: the first that leads to a secret counts.
var links = []link{
	{relation: assigned, pattern: after(closers + blanks + `(?:=>?|:=|＝)[ \t]*(?:(?:\r?\n)[ \t]*string\(|)`)},
	{relation: told, pattern: after(closers + blanks + `[:：]{1,2}(?:\*{2})?` + blanks)},
	{relation: assigned, pattern: after(`" *(?:;s:\d+:|\]=>\s+string\(\d+\) )`)}, // PHP
	{relation: assigned, pattern: after(`\([ \t]*`), quoted: true},               // setPassword("x")
	{relation: said, pattern: after(`\\*["'][ \t]*,[ \t]*b?`), quoted: true, before: inCall},
	{relation: assigned, pattern: after(element + `>\s{0,20}(?:<!\[CDATA\[)?`), element: true, before: inElement},
	{relation: assigned, pattern: after(`["']` + element + `>`), element: true, before: inTag},
	{relation: assigned, pattern: after(`["']?` + element + `[ \t]value=`), quoted: true, before: inTag},
	{relation: assigned, pattern: after(`\s*(?:</\w{1,20}>\s*){1,3}<\w{1,20}` + element + `>`), element: true}, // the next cell
	{
		relation: assigned, before: afterNameField,
		pattern: after(`\\*["']?\s{0,40},?\s{0,40}\\*["']?(?i:value|string_value)\\*["']?[ \t]*:[ \t]*`),
	},
	{ // token: {value: x}
		relation: told,
		pattern:  after(`\\*["']?[ \t]*:\s{0,40}(?:\{(?:[^{}]{0,100},)?)?\s{0,40}\\*["']?(?i:value)\\*["']?[ \t]*:[ \t]*`),
	},
	{
		relation: assigned, quoted: true, passwordOnly: true, before: afterSQL,
		pattern: after(`(?i: for [^\s=]{1,80})?[ \t]*(?:=[ \t]*)?(?:[ \t]|PASSWORD\()`),
	},
	{relation: assigned, pattern: after(`[ \t]+`), last: true, before: afterCommand}, // setenv TOKEN x
	{relation: said, pattern: after(closers + `[ \t]+\|?[ \t]*`), last: true, before: startsLine},
	{relation: stated, pattern: after(closers + `(?: (?:for|of|to|von|für|de|pour|para|di) [^\s:=]{1,40})?` +
		`(?:(?: (?:is|was|has|been|set|reset|changed|updated|now|to|ist|lautet|wurde|auf|geändert|est|es|é|è|är|er|jest))+` +
		`|は|是|为|это)[:：]?[ \t]*`)},
	{relation: said, pattern: after(`[ \t]+`), passwordOnly: true},
	{relation: said, pattern: after(closers + `[ \t][^\n:=,;"]{1,90}:[ \t]*\n{0,2}[ \t]*`), passwordOnly: true, last: true},
	{relation: said, pattern: after(` [^\n:=,;"]{0,30}\([^()\n]{1,80}\):[ \t]*\n{0,2}[ \t]*`), passwordOnly: true, last: true},
	{relation: said, pattern: after(` [^\n:=,;"]{1,60} for [\w.@-]{1,40}:[ \t]*`), passwordOnly: true, last: true},
}

// after compiles a pattern for what follows a name.
func after(pattern string) *regexp.Regexp { return regexp.MustCompile(`^` + pattern) }

// findNamed returns the positions of secrets that a name announces.
func findNamed(text, lower string) (found []span) {
	done := 0
	blocks, columns, lists := 0, 0, 0
	wordScanner.scan(lower, func(at, id int) {
		if at < done {
			return
		}
		w := secretWords[id]
		w.counts = w.label != passwordLabel || w.text == "pass" && isWhole(text, at)
		end, is := w.isName(text, at)
		if isList := is || w.label != fieldLabel && strings.HasPrefix(text[end:], "s"); isList && end >= lists {
			items, after := w.listOf(text, end)
			found, lists = append(found, items...), max(lists, after)
		}
		if !is || strings.HasSuffix(text[:nameStart(text, at)], "${") {
			return
		}
		secret, is := w.valueOf(text, at, end)
		if !is && end >= blocks {
			secret, is = w.blockOf(text, end)
			blocks = max(blocks, secret.end)
		}
		if is {
			found = append(found, secret)
			done = max(done, secret.end)
			return
		}
		if end >= columns {
			cells, after := w.columnOf(text, at, end)
			found, columns = append(found, cells...), max(columns, after)
		}
	})
	return found
}

// span returns the span of a secret that the word announces.
func (w *secretWord) span(start, end int) span {
	rank := maxShapes
	switch w.label {
	case tokenLabel:
		rank++
	case fieldLabel:
		rank += 2
	}
	return span{start, end, w.label, rank}
}

// valueOf returns the position of the value of a name. The name ends at end.
func (w *secretWord) valueOf(text string, at, end int) (secret span, found bool) {
	rest := text[end:min(len(text), end+maxLink)]
	for i := range links {
		l := &links[i]
		if l.passwordOnly && w.label != passwordLabel || w.directive && l.relation != said && i > 1 {
			continue
		}
		if l.before != nil && !l.before(text, at) {
			continue
		}
		length := len(l.pattern.FindString(rest))
		if length == 0 {
			continue
		}
		v := valueAt(text, end+length)
		if l.element {
			v = elementAt(text, end+length)
		}
		if l.admits(text, at, v) && w.accepts(text, l.relation, v) {
			return w.span(v.start, v.end), true
		}
	}
	return span{}, false
}

// admits reports whether the link can lead to a value. The word of the name is at a position.
func (l *link) admits(text string, at int, v assignedValue) bool {
	return (v.quoted || !l.quoted && (l.relation != told || !isType(text, at, v))) && (!l.last || v.endsLine(text))
}

// accepts reports whether a value is a secret.
func (w *secretWord) accepts(text string, by relation, v assignedValue) bool {
	secret := text[v.start:v.end]
	if len(secret) < minAssigned || !isSecretText(secret) ||
		ordinaryWords[lowerASCII(strings.TrimRight(secret, ").:;,]}"))] ||
		strings.HasPrefix(secret, maskStart) || secret[0] == ' ' && strings.Contains(secret, "\n") ||
		!v.quoted && isReference(text, v) {
		return false
	}
	if w.counts && len(secret) < minDigits && strings.Trim(secret, "0123456789") == "" {
		return strings.Contains(w.text, "code") && len(secret) > minAssigned // token=4096 is a count
	}
	switch {
	case w.directive:
		return true
	case by == said || by == stated:
		return v.quoted && hasDigit(secret) || isMixed(secret) || by == stated && numbered.MatchString(secret)
	case by == assigned || v.quoted:
		return true
	}
	return hasDigit(secret) || v.endsLine(text) && strings.IndexFunc(secret, isProse) < 0 && len(secret) > minAssigned+1
}

// isProse reports whether a character is rather one of a sentence, a path or an address than of a password.
func isProse(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune("-./:(", r) }

// isMixed reports whether a word mixes letters with digits as no name and no number does.
func isMixed(text string) bool {
	letters, digits := 0, 0
	for i := range len(text) {
		switch {
		case isDigit(text[i]):
			digits++
		case isAlphanumeric(text[i]):
			letters++
		case strings.IndexByte("/:@.", text[i]) >= 0 && digits+letters < 2:
			return false
		case text[i] < '!' || text[i] > '~':
			return false
		}
	}
	return letters > 1 && digits > 0 && len(text) > 5 && !strings.Contains(text, "://") &&
		!ordinaryShape.MatchString(text)
}

// code matches what refers to a value: config.password, *tls.Config.
var code = regexp.MustCompile(`^[*&]?(?:[A-Za-z_]+\.)+[A-Za-z_]+[):,;]{0,3}$|^[*&]?\w+\.[A-Z]\w*|` +
	`^[\w.]+\[|^[\w.]*\{|^[@&]?\w+::|^[a-z_]+_[a-z_]+[):,;]{0,3}$`)

// A type follows a name and a colon in code: variable and parameter match what is in front of the name, typeName the
// type.
var (
	variable  = regexp.MustCompile(codeWord + `(?:let|const|var|val)[ \t][^\n"'=]*$`)
	parameter = regexp.MustCompile(codeWord + `(?:def|fn|fun|func|function)[ \t][^\n"'=(]*\([^\n"'=]*$`)
	typeName  = regexp.MustCompile(`^[&*]?[A-Za-z_][\w.<>\[\]:|?,]*$`)
)

const codeWord = `(?:^|[^A-Za-z]|\\[nrt])`

// isType reports whether a value, after the name whose word begins at a position, is a type in code.
func isType(text string, at int, v assignedValue) bool {
	at = nameStart(text, at)
	before := text[max(0, at-maxBefore):at]
	return typeName.MatchString(text[v.start:v.end]) && (parameter.MatchString(before) ||
		variable.MatchString(before) &&
			strings.HasPrefix(strings.TrimLeft(text[v.end:min(len(text), v.end+maxName)], " "), "="))
}

// numbered matches a word with a number, such as hunter2.
var numbered = regexp.MustCompile(`^[A-Za-z]{4,}\d{1,4}[.!]?$`)

// isReference reports whether a value without quotes refers to a variable, as in password = config.password. Files of
// settings have no blanks around the equals sign.
func isReference(text string, v assignedValue) bool {
	secret := text[v.start:v.end]
	spaced := v.start > 0 && isBreak(text[v.start-1])
	return spaced && code.MatchString(secret) || strings.EqualFold(secret, nameEndingAt(text, v.start))
}

// nameEndingAt returns the name to which a value at a position is assigned.
func nameEndingAt(text string, at int) string {
	end := skipBack(text, at, "= \t")
	return text[nameStart(text, end):end]
}

// ordinaryShape matches what is no secret although it mixes letters and digits: times, versions, names with a number,
// hosts.
var ordinaryShape = regexp.MustCompile(`^(?:\d{4}-\d\d|v?\d+\.\d|[a-z]{2,}\d{0,2}[-./:]|[a-z-]+\d?$|\w+\.\w+\.\w|` +
	`sha\d+|ssh\d|ipv?\d|utf-?\d|base\d|md5|http)`)

// assignedValue is the position of a value.
type assignedValue struct {
	start, end int
	quoted     bool
}

// endsLine reports whether only punctuation follows in the line of the value.
func (v assignedValue) endsLine(text string) bool {
	rest := text[v.end:min(len(text), v.end+maxLink)]
	if at := strings.IndexByte(rest, '\n'); at >= 0 {
		rest = rest[:at]
	}
	rest = strings.TrimLeft(rest, " \t\r\"'`\\;.,!)|}]")
	return rest == "" || rest[0] == '#' || rest[0] == '&' || rest[0] == '<' || rest[0] == 'n'
}

const (
	// maxValue limits a quoted value, and maxQuotedLines its lines.
	maxValue       = 4 << 10
	maxQuotedLines = 64
)

// wrapper matches what stands in front of a value: a type, a call, a bracket, an anchor of YAML, a prefix of a string.
var wrapper = regexp.MustCompile(`^(?:!!?[\w.-]*[ \t]+|&[\w-]+[ \t]+|(?:Some|Secret|Ok|str|String|bytes|SecretString|PASSWORD|getpass)\(|` +
	`string\(\d+\) |\d+\) |s:\d+:|[bBuUrRfF$@]["'` + "`" + `]|\[|\*{2}|[Bb]earer |[Bb]asic )`)

// valueAt returns the value that begins at a position.
func valueAt(text string, at int) assignedValue {
	for range 3 {
		if strings.HasPrefix(text[at:], maskStart) {
			return assignedValue{start: at, end: at}
		}
		length := len(wrapper.FindString(text[at:min(len(text), at+maxLink)]))
		if length == 0 {
			break
		}
		if last := text[at+length-1]; last == '"' || last == '\'' || last == '`' {
			length--
		}
		at += length
	}
	mark := at
	for mark < len(text) && mark-at < maxBackslashes && text[mark] == '\\' {
		mark++
	}
	if mark < len(text) && strings.IndexByte("\"'`", text[mark]) >= 0 {
		return quotedAt(text, at, mark)
	}
	if begins.MatchString(text[at:min(len(text), at+maxName)]) {
		return assignedValue{start: at, end: at}
	}
	return assignedValue{start: at, end: plainEnd(text, at)}
}

// elementAt returns the value of an element that begins at a position; an empty one if the element does not end.
func elementAt(text string, at int) assignedValue {
	content := text[at:min(len(text), at+maxValue)]
	end := strings.IndexByte(content, '<')
	if cdata := strings.Index(content, "]]>"); cdata >= 0 && cdata < end {
		end = cdata
	} else if end < 0 || !strings.HasPrefix(content[end:], "</") {
		return assignedValue{start: at, end: at}
	}
	if value := content[:end]; strings.Contains(value, " ") && !hasDigit(value) {
		return assignedValue{start: at, end: at} // a sentence
	}
	return assignedValue{start: at, end: at + end}
}

// quotedAt returns a quoted value. Its quotation mark is at the position mark, after backslashes from at on.
func quotedAt(text string, at, mark int) assignedValue {
	opener := text[at : mark+1]
	if triple := strings.Repeat(opener, 3); strings.HasPrefix(text[at:], triple) {
		opener = triple
	} else if strings.HasPrefix(text[mark+1:], opener) { // an empty text
		return assignedValue{start: mark + 1, end: mark + 1, quoted: true}
	}
	start := at + len(opener)
	limit, lines := min(len(text), start+maxValue), 0
	for end := start; end < limit; end++ {
		switch {
		case strings.HasPrefix(text[end:], opener):
			if more := len(quoteInQuotes.FindString(text[end:min(len(text), end+maxBackslashes)])); opener == "'" &&
				more > 0 {
				end += more - 1
				continue
			}
			return assignedValue{start, end, true}
		// the end of another
		case text[end] == '\n' && (opener == "`" || end == start || strings.IndexByte("+,;:)]} .", text[start]) >= 0):
			return assignedValue{start: start, end: start, quoted: true}
		case text[end] == '\n':
			lines++
			if lines == maxQuotedLines {
				limit = end
			}
		case text[end] == '\\' && len(opener) == 1 && opener != "'":
			end++
		}
	}
	return assignedValue{start: start, end: plainEnd(text, start)} // it is cut
}

// quoteInQuotes matches how a shell writes a single quote between single quotes.
var quoteInQuotes = regexp.MustCompile(`^'\\+''`)

// maxSeparators limits the characters of a value that are examined as its possible end.
const maxSeparators = 32

// plainEnd returns the end of a value without quotes. A character such as a comma ends it if nothing follows, or
// something with a name of its own.
func plainEnd(text string, at int) int {
	limit, separators := min(len(text), at+maxValue), 0
	for end := at; end < limit; end++ {
		switch c := text[end]; {
		case isAlphanumeric(c):
		case c <= ' ' || c == '"' || c == '\'' || c == '`' || c == 0x7f:
			return end
		case c == '\\':
			if end+1 == limit || strings.IndexByte("nrtuxUbf\"'\\/", text[end+1]) >= 0 || isBreak(text[end+1]) {
				return end
			}
		case strings.IndexByte(",;&|)}]<>", c) >= 0:
			separators++
			if end == at || separators <= maxSeparators && endsHere(text[end+1:min(len(text), end+maxName)]) {
				return end
			}
		case c >= utf8.RuneSelf:
			if r, _ := utf8.DecodeRuneInString(text[end:]); unicode.IsSpace(r) ||
				unicode.IsLetter(r) && !unicode.In(r, unicode.Latin) ||
				strings.ContainsRune("。、，；“”’）」", r) {
				return end
			}
		}
	}
	return limit
}

// maxName limits a name that ends the value before it.
const maxName = 60

// endsHere reports whether a value ends in front of a text.
func endsHere(after string) bool { return afterValue.MatchString(after) }

var afterValue = regexp.MustCompile(`^(?:$|[\s"'` + "`" + `\\,;)}\]<>/|&#]|[\w.-]{1,40}(?:=|:|%3[Dd])|(?:amp|quot|lt|gt|#\d+);)`)
