package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	// minSecret is the minimum length of a secret, in bytes. The values of variables that contain secrets are masked
	// wherever they occur. Values that are shorter than this, such as "1" or "root", also occur in ordinary text.
	minSecret = 8
	// minDigits is the minimum length of a secret of digits only, and minWord is the minimum length of a secret of
	// letters only. Shorter numbers and words are usually settings and not secrets.
	minDigits = 12
	minWord   = 16
)

var (
	// secretName matches names of variables that contain secrets.
	secretName = regexp.MustCompile(
		`(?i)KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|HEADERS|(?:_|^)(?:PASS|PWD|PW|DSN|AUTH|PAT)$`)
	// placeName matches the names of three kinds of variables: those that contain the location of a secret, those with
	// the names of git settings, and the working directories of a shell. The values of these variables are not secret.
	placeName = regexp.MustCompile(`(?i)_(?:FILE|PATH|DIR|URI|URL|URLS|SOCK|NAME|ID)$|` +
		`^GOOGLE_APPLICATION_CREDENTIALS$|^CLAUDE_CODE_CLIENT_KEY$|^GIT_CONFIG_KEY_\d+$|^(?:OLD)?PWD$`)
	// keyID matches names that end with ACCESS_KEY_ID. They also match placeName, but the values of these variables are
	// parts of secrets.
	keyID = regexp.MustCompile(`(?i)ACCESS_KEY_ID$`)
	// word matches a word of letters, or several such words joined by separators.
	word = regexp.MustCompile(`^(?:[A-Za-z]?[a-z]+|[A-Z]+)(?:[-_. ](?:[A-Za-z]?[a-z]+|[A-Z]+))*$`)
	// addresses matches the URLs in a list.
	addresses = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s,"']+`)
)

// value is a secret from the environment.
type value struct {
	// name is the name of its variable.
	name string
	// secret is the value itself.
	secret string
	// forms holds the spellings of the value: literal, in JSON, in URLs and in hexadecimal digits.
	forms []string
	// encoded holds the base64 spellings of the value. They lack the characters that depend on the bytes before and
	// after the value.
	encoded []string
}

// valuesOf returns the secrets in environ ("NAME=value").
func valuesOf(environ []string) []value {
	var all []value
	known := map[string]bool{}
	for _, variable := range environ {
		name, content, _ := strings.Cut(variable, "=")
		for _, secret := range secretsOf(name, content) {
			for _, part := range append([]string{secret}, linesOf(secret)...) {
				if known[part] || !isDistinct(part) {
					continue
				}
				known[part] = true
				all = append(all, value{name: name, secret: part, forms: formsOf(part), encoded: encodedForms(part)})
			}
		}
	}
	return all
}

// linesOf returns what is secret in the lines of a secret with several: a log can show each after something else. Lines
// that any document can have are ordinary text.
func linesOf(secret string) (parts []string) {
	if !strings.Contains(secret, "\n") {
		return nil
	}
	for line := range strings.SplitSeq(secret, "\n") {
		line = strings.TrimSpace(line)
		found := merge(findAnnounced(line))
		for _, s := range found {
			parts = append(parts, line[s.start:s.end])
		}
		part, structural := line, structure.MatchString(line)
		if field := setting.FindStringSubmatch(line); field != nil {
			part, structural = field[1], true
		}
		if len(found) == 0 && (!structural && hasDigit(line) ||
			slices.ContainsFunc(runs.FindAllString(part, -1), isRandom)) {
			parts = append(parts, part)
		}
	}
	return parts
}

var (
	// setting matches a line with a name and its value, and structure matches comments, brackets and the like.
	setting   = regexp.MustCompile(`^(?:- )?["']?[\w. /-]{1,60}["']?[ \t]*[:=][ \t]*["']?(.*?)["']?[,;]?$`)
	structure = regexp.MustCompile(`^[-#/;*<{}\[\]]`)
	runs      = regexp.MustCompile(`[A-Za-z0-9]{8,}`)
	// numberedName matches a name with a number, such as cluster12.
	numberedName = regexp.MustCompile(`^[A-Za-z]+\d{1,4}$`)
)

// isRandom reports whether a run of letters and digits is so long, or so mixed, as those of keys.
func isRandom(run string) bool {
	const long = 20
	return len(run) >= long || hasDigit(run) && strings.Trim(run, "0123456789") != "" && !numberedName.MatchString(run)
}

// plainForms returns the values as findPlain finds them, and a scanner for their beginnings.
func plainForms(values []value) ([]form, *scanner) {
	var forms []form
	var keywords []keyword
	for _, v := range values {
		text := plainForm(v.secret)
		if len(text) < minSecret || word.MatchString(text) && len(text) < minWord {
			continue
		}
		keywords = append(keywords, keyword{text[:minSecret], len(forms)})
		forms = append(forms, form{text: text, name: v.name})
	}
	return forms, newScanner(keywords)
}

// secretsOf returns the secrets in the content of a variable. It always returns the credentials in URLs. If the
// variable's name suggests a secret, secretsOf also returns the whole content. If the name also says that the variable
// contains headers, secretsOf returns the value of each header, with and without the first word.
func secretsOf(name, content string) []string {
	var secrets []string
	for _, address := range addresses.FindAllString(content, -1) {
		secrets = append(secrets, addressSecrets(address)...)
	}
	if !secretName.MatchString(name) || placeName.MatchString(name) && !keyID.MatchString(name) {
		return secrets
	}
	secrets = append(secrets, strings.TrimSpace(content))
	if !strings.Contains(strings.ToUpper(name), "HEADERS") {
		return secrets
	}
	// OpenTelemetry's form is name=value,name=value with URL encoding
	for pair := range strings.SplitSeq(content, ",") {
		_, field, _ := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(field))
		if err != nil {
			decoded = field
		}
		_, credentials, _ := strings.Cut(decoded, " ")
		secrets = append(secrets, decoded, strings.TrimSpace(credentials))
	}
	for line := range strings.Lines(content) {
		_, field, _ := strings.Cut(line, ":")
		secrets = append(secrets, strings.TrimSpace(field))
		_, credentials, _ := strings.Cut(strings.TrimSpace(field), " ") // drop Bearer or Basic
		secrets = append(secrets, strings.TrimSpace(credentials))
	}
	return secrets
}

// addressSecrets returns the secrets in a URL: the user information before the "@", the password as written and
// decoded, and parameters whose names suggest a secret.
func addressSecrets(address string) []string {
	_, rest, _ := strings.Cut(address, "://")
	authority, _, _ := strings.Cut(rest, "/")
	var secrets []string
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		written := authority[:at]
		_, password, _ := strings.Cut(written, ":")
		secrets = append(secrets, written, password)
		if meant, err := url.PathUnescape(password); err == nil {
			secrets = append(secrets, meant)
		}
	}
	_, query, _ := strings.Cut(rest, "?")
	for parameter := range strings.SplitSeq(query, "&") {
		name, content, _ := strings.Cut(parameter, "=")
		if secretName.MatchString(name) {
			secrets = append(secrets, content)
		}
	}
	return secrets
}

// isDistinct reports whether a secret is so unusual that it is unlikely to occur in ordinary text by chance.
func isDistinct(secret string) bool {
	switch {
	case len(secret) < minSecret:
		return false
	case strings.IndexFunc(secret, func(r rune) bool { return !unicode.IsDigit(r) }) < 0:
		return len(secret) >= minDigits
	case word.MatchString(secret):
		return len(secret) >= minWord
	default:
		return true
	}
}

// formsOf returns the spellings of a secret: literal, in a JSON string, in a JSON string inside another, in a
// URL, and in hexadecimal digits.
func formsOf(secret string) []string {
	inJSON := quoted(secret)
	html, _ := json.Marshal(secret) //nolint:errchkjson // encoding a string cannot fail
	forms := []string{
		secret, inJSON, quoted(inJSON), string(html[1 : len(html)-1]),
		url.QueryEscape(secret), url.PathEscape(secret),
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
	}
	for _, escaped := range forms[4:6] {
		forms = append(forms, percent.ReplaceAllStringFunc(escaped, strings.ToLower))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// percent matches an escaped byte of a URL.
var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

// quoted returns text as the inside of a JSON string.
func quoted(text string) string {
	whole := encodeString(text)
	return string(whole[1 : len(whole)-1])
}

// minEncoded is the minimum number of base64 characters that must match. Eight characters are 48 bits, so a match by
// chance is practically impossible.
const minEncoded = 8

// encodedForms returns the base64 spellings of a secret, without the characters that depend on the bytes around the
// secret. There are up to six spellings: the secret can begin at three offsets in a group of three bytes, and base64
// has two alphabets.
func encodedForms(secret string) []string {
	var forms []string
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			whole := alphabet.EncodeToString(append(make([]byte, before), secret...))
			core := whole[(before*8+5)/6 : (before+len(secret))*8/6]
			if len(core) >= minEncoded {
				forms = append(forms, core)
			}
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// form is one spelling of a value.
type form struct {
	text string
	// name is the name of the variable.
	name string
	// encoded is true for a form in base64. anchor is the offset, in the form, of the keyword by which findValues finds
	// the form. A long base64 text has two forms with different anchors, because a line break can interrupt one of the
	// keywords.
	encoded bool
	anchor  int
}

// formsIn returns the forms of all given values, and a scanner for the keywords of these forms.
func formsIn(values []value) ([]form, *scanner) {
	var forms []form
	var keywords []keyword
	add := func(f form) {
		keywords = append(keywords, keyword{f.text[f.anchor : f.anchor+minEncoded], len(forms)})
		forms = append(forms, f)
	}
	for _, v := range values {
		for _, text := range v.forms {
			add(form{text: text, name: v.name})
		}
		for _, text := range v.encoded {
			add(form{text: text, name: v.name, encoded: true})
			if len(text) >= 2*minEncoded {
				add(form{text: text, name: v.name, encoded: true, anchor: minEncoded})
			}
		}
	}
	return forms, newScanner(keywords)
}

// findValues returns the positions of the values in text.
func (r *Redactor) findValues(text string) []span {
	var found []span
	seen := make([]int, len(r.forms)) // end of the last match of each form
	r.scanner.scan(text, func(at, id int) {
		f := &r.forms[id]
		if at < seen[id] {
			return
		}
		start, end, there := at, at+len(f.text), strings.HasPrefix(text[at:], f.text)
		if f.encoded {
			start, end, there = f.findEncoded(text, at)
		}
		if there {
			found, seen[id] = append(found, span{start, end, f.name, 0}), end
		}
	})
	return found
}

// findEncoded returns the position of a base64 form whose keyword is at position at in text. It extends the position to
// all base64 characters around the form. In the text, line breaks can interrupt the form.
func (f *form) findEncoded(text string, at int) (start, end int, found bool) {
	start, before := matchBackward(text, at, f.text[:f.anchor])
	end, after := matchForward(text, at, f.text[f.anchor:])
	start, end = extendToRun(text, start, end)
	return start, end, before+after >= min(len(f.text), 2*minEncoded)
}

// matchForward compares the text from position at on with a form. It ignores line breaks and blanks in the text. It
// returns the end of the match in the text, and the number of bytes of the form that matched.
func matchForward(text string, at int, form string) (end, matched int) {
	end = at
	for at < len(text) && matched < len(form) {
		switch {
		case text[at] == form[matched]:
			at++
			matched++
			end = at
		case isBreak(text[at]):
			at++
		case text[at] == '\\' && at+1 < len(text) && (text[at+1] == 'n' || text[at+1] == 'r'):
			at += 2
		default:
			return end, matched
		}
	}
	return end, matched
}

// matchBackward works like matchForward, but compares the text in front of position at, from the end to the beginning.
func matchBackward(text string, at int, form string) (start, matched int) {
	start = at
	for at > 0 && matched < len(form) {
		switch {
		case text[at-1] == form[len(form)-1-matched]:
			at--
			matched++
			start = at
		case isBreak(text[at-1]):
			at--
		default:
			return start, matched
		}
	}
	return start, matched
}

func isBreak(c byte) bool { return c == '\n' || c == '\r' || c == ' ' || c == '\t' }

// maxRun limits the number of bytes by which extendToRun extends a span to each side.
const maxRun = 8 << 10

// extendToRun extends a span to the run of base64 around it.
func extendToRun(text string, start, end int) (from, to int) {
	from, to = start, end
	for from > 0 && start-from < maxRun && isBase64(text[from-1]) {
		from--
	}
	for to < len(text) && to-end < maxRun && (isBase64(text[to]) || text[to] == '=') {
		to++
	}
	return from, to
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' ||
		c == '_'
}

// occurrences returns an iterator over the positions of part in text, without overlaps.
func occurrences(text, part string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for from := 0; ; {
			at := strings.Index(text[from:], part)
			if at < 0 || !yield(from+at) {
				return
			}
			from += at + len(part)
		}
	}
}
