package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// The ends of the names of what is secret. A name that goes on, as in token_count, is another's.
const (
	passwordNames = `(?:passw(?:or)?d|passphrase|(?:\b|_|[^\w])(?:pass|pwd))` //nolint:gosec // a pattern
	tokenNames    = `token`
	secretNames   = `(?:secret|(?:api|access|private|auth|secret|encryption)[_.-]?key|key-data|credentials?)` //nolint:gosec // a pattern
)

// assignment returns a pattern for names of something secret and what they get: in its first groups quoted, in
// groupPlain as it stands.
func assignment(names string) string {
	return `(?i)` + names + quotes + `?[ \t]*(=>?|:=?| is )[ \t]*(?:"((?:[^"\\\n]|\\.)+)|\\"([^"\\\n]+)|\\?'([^'\\\n]+)|` +
		`([^\s"'` + "`" + `,;&<>|)}\]\\][^\s"'` + "`" + `,;&<>|)}\]\\]*)([ \t]+[^\s,;&|#])?)`
}

// The groups of assignment.
const (
	groupOperator = 1
	groupQuoted   = 2
	groupPlain    = 5
	groupMore     = 6 // what follows in the same line
)

// minAssigned is the length in bytes of a secret beside its name: it masks nothing elsewhere.
const minAssigned = 4

// acceptAssignment reports whether what an assignment gives is a secret. In prose a colon means less: there
// it has to have a digit, or to end the line.
func acceptAssignment(match []string) bool {
	operator, plain := match[groupOperator], match[groupPlain]
	secret := assignedValue(match)
	if len(secret) < minAssigned || !isSecretText(secret) || ordinary[strings.ToLower(secret)] || isCount(match[0], secret) {
		return false
	}
	if plain == "" || strings.HasPrefix(operator, "=") {
		return true
	}
	if operator == " is " {
		return hasDigit(plain)
	}
	return hasDigit(plain) || match[groupMore] == "" && !strings.ContainsAny(plain, "-./:(") && len(plain) > minAssigned+1
}

// assignedValue returns what an assignment gives.
func assignedValue(match []string) string {
	for _, group := range match[groupQuoted:groupMore] {
		if group != "" {
			return group
		}
	}
	return ""
}

// isCount reports whether a number is that of a model's tokens, or of others.
func isCount(assigned, content string) bool {
	digits := strings.IndexFunc(content, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
	return digits && len(content) < minDigits && strings.HasPrefix(strings.ToLower(assigned), "token")
}

// placeholder matches what stands for a secret and is none: variables, templates, calls, stars.
var placeholder = regexp.MustCompile(`^(?:\\?\$|<|%[a-z({]|\{\{|\*{3}|\.\.\.|…|x{3,}$|X{3,}$|[-_]+$|os\.|process\.env|env\.|var\.|\w+\()`)

// path matches the path of a file of some depth.
var path = regexp.MustCompile(`^(?:~|\.{0,2})/(?:[\w.-]+/)+[\w.-]*$`)

// isSecretText reports whether a text can be a secret rather than what stands for one.
func isSecretText(text string) bool {
	return text != "" && !placeholder.MatchString(text) && !path.MatchString(text)
}

// isSecretName reports whether a name ends as names of secrets do.
func isSecretName(name string) bool { return nameEnd.MatchString(name) }

var nameEnd = regexp.MustCompile(`(?i)(?:` + passwordNames + `|` + tokenNames + `|` + secretNames + `)$`)

// isPortAndPath tells a port and what follows from a password: "8080/x".
var portAndPath = regexp.MustCompile(`^\d{1,5}(?:/|$)`)

func isPortAndPath(text string) bool {
	return portAndPath.MatchString(text) && strings.Contains(text, "/")
}

func hasDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }

// afterBlank returns the last word of text.
func afterBlank(text string) string { return text[strings.LastIndexByte(text, ' ')+1:] }

// ordinary are words that follow the name of a secret, and are none.
var ordinary = func() map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(`
		true false null none yes empty set unset given missing invalid valid expired required optional unknown wrong bad denied
		refused revoked rejected rotated changed unchanged updated reset redacted hidden masked present absent enabled disabled
		default failed failure failing error errors incorrect correct mismatch matches undefined nil string bearer basic secret
		token password passwd key value authentication unauthorized forbidden found here below above file files prompt stdin ask
		never always only same different unavailable available created deleted exists secrets tokens ok`) {
		words[w] = true
	}
	return words
}()
