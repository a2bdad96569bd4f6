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
	// minSecret is the length in bytes from which a variable's value is masked wherever it stands. A shorter
	// one, such as "1" or "root", stands in ordinary text, too.
	minSecret = 8
	// minDigits is that length for a number, and minWord for a word of letters: such values are settings
	// more often than secrets.
	minDigits = 12
	minWord   = 16
)

var (
	// secretName is what the names of variables with secrets in them look like.
	secretName = regexp.MustCompile(
		`(?i)KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|HEADERS|(?:_|^)(?:PASS|PWD|PW|DSN|AUTH|PAT)$`)
	// placeName is what the names of variables look like that say where a secret is.
	// Those of git are the names of its settings.
	placeName = regexp.MustCompile(`(?i)_(?:FILE|PATH|DIR|URI|URL|URLS|SOCK|NAME|ID)$|` +
		`^GOOGLE_APPLICATION_CREDENTIALS$|^CLAUDE_CODE_CLIENT_KEY$|^GIT_CONFIG_KEY_\d+$`)
	// keyID is the one name of these that is part of a secret.
	keyID = regexp.MustCompile(`(?i)ACCESS_KEY_ID$`)
	// word is letters, with what joins words.
	word = regexp.MustCompile(`^(?:[A-Za-z]?[a-z]+|[A-Z]+)(?:[-_. ](?:[A-Za-z]?[a-z]+|[A-Z]+))*$`)
	// addresses are URLs in a list of them.
	addresses = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s,"']+`)
)

// value is a secret of the environment.
type value struct {
	// name is its variable.
	name string
	// forms are the value as it is, and as it is written in JSON, URLs and hexadecimal digits.
	forms []string
	// encoded are what the value is in base64, whatever comes before and after it in what is encoded.
	encoded []string
}

// valuesOf returns the secrets in environ ("NAME=value").
func valuesOf(environ []string) []value {
	var all []value
	known := map[string]bool{}
	for _, variable := range environ {
		name, content, _ := strings.Cut(variable, "=")
		for _, secret := range secretsOf(name, content) {
			if known[secret] || !isDistinct(secret) {
				continue
			}
			known[secret] = true
			all = append(all, value{name: name, forms: formsOf(secret), encoded: encodedForms(secret)})
		}
	}
	return all
}

// secretsOf returns what is secret in the content of a variable: all of it if its name says so, each line and
// what follows a header's name; and the credentials of addresses whatever the name is.
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
	for line := range strings.Lines(content) {
		_, field, _ := strings.Cut(line, ":")
		secrets = append(secrets, strings.TrimSpace(field))
		_, credentials, _ := strings.Cut(strings.TrimSpace(field), " ") // after Bearer or Basic
		secrets = append(secrets, strings.TrimSpace(credentials))
	}
	return secrets
}

// addressSecrets returns what is secret in a URL: its password as written and as meant, both with the name
// before it, a name without a password that is long, and parameters that are named like secrets.
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

// isDistinct reports whether a value is unlike ordinary text.
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

// formsOf returns how a secret is written: as it is, in a JSON string, in one inside another, in a URL, and in
// hexadecimal digits.
func formsOf(secret string) []string {
	inJSON := quoted(secret)
	html, _ := json.Marshal(secret) //nolint:errchkjson // a string always encodes
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

// percent is an escaped byte of a URL.
var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

// quoted returns text as it stands in a JSON string.
func quoted(text string) string {
	whole := encodeString(text)
	return string(whole[1 : len(whole)-1])
}

// minEncoded is how many characters of base64 tell a value from chance: 48 bits.
const minEncoded = 8

// encodedForms returns the characters of base64 that a secret alone decides, for each of the three places in
// a group of three bytes at which it can begin, in both alphabets.
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

// form is one way in which a value is written.
type form struct {
	text string
	// name is that of the variable.
	name string
	// encoded says that the form is base64, and anchor where in it the keyword stands by which it is found. It
	// has two of them, because a line may break in one.
	encoded bool
	anchor  int
}

// formsIn returns all forms of values, and what finds them.
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

// findValues returns where the values stand in text.
func (r *Redactor) findValues(text string) []span {
	var found []span
	seen := make([]int, len(r.forms)) // up to where each form was found
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

// findEncoded returns where the form stands in text whose anchor stands at at, with the run of base64 that it is a part
// of. Lines may be broken in it.
func (f *form) findEncoded(text string, at int) (start, end int, found bool) {
	start, before := walkBack(text, at, f.text[:f.anchor])
	end, after := walk(text, at, f.text[f.anchor:])
	start, end = growRun(text, start, end)
	return start, end, before+after >= min(len(f.text), 2*minEncoded)
}

// walk follows form in text from at, over line breaks, and returns where it ends and how much of it is there.
func walk(text string, at int, form string) (end, matched int) {
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

// walkBack is walk towards the beginning of text.
func walkBack(text string, at int, form string) (start, matched int) {
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

// maxRun is how far a run of base64 is followed to each side.
const maxRun = 8 << 10

// growRun extends a span to the run of base64 that it is a part of.
func growRun(text string, start, end int) (from, to int) {
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
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// occurrences yields where part stands in text, without overlaps.
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
