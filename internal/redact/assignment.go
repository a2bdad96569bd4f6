package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// Each pattern matches the end of a secret's name. It does not match a name that continues, as in token_count.
const (
	passwordNames = `(?:passw(?:or)?d|passphrase|(?:\b|_|[^\w])(?:pass|pwd))` //nolint:gosec // a pattern
	tokenNames    = `token`
	secretNames   = `(?:secret|(?:api|access|private|auth|secret|encryption)[_.-]?key|key-data|credentials?)` //nolint:gosec // a pattern
)

// assignment returns a pattern for an assignment to a secret's name. The argument names is a pattern for the end of
// that name. The returned pattern has groups for the assigned value. A quoted value is in one of the groups from
// groupQuoted on. A value without quotes is in groupPlain.
func assignment(names string) string {
	return `(?i)` + names + quotes + `?[ \t]*(=>?|:=?| is )[ \t]*(?:"((?:[^"\\\n]|\\.)+)|\\"([^"\\\n]+)|\\?'([^'\\\n]+)|` +
		`([^\s"'` + "`" + `,;&<>|)}\]\\][^\s"'` + "`" + `,;&<>|)}\]\\]*)([ \t]+[^\s,;&|#])?)`
}

// The groups of the pattern returned by assignment.
const (
	groupOperator = 1
	groupQuoted   = 2
	groupPlain    = 5
	groupMore     = 6 // the rest of the line
)

// minAssigned is the minimum length of an assigned secret, in bytes. It can be low, because such a secret is masked
// only next to its name.
const minAssigned = 4

// acceptAssignment reports whether the assigned value is a secret. In prose, other words often follow the name. So a
// value without quotes after "is" must contain a digit. After a colon, such a value must contain a digit or end the
// line.
func acceptAssignment(match []string) bool {
	operator, plain := match[groupOperator], match[groupPlain]
	secret := assignedValue(match)
	if len(secret) < minAssigned || !isSecretText(secret) || ordinaryWords[strings.ToLower(secret)] || isCount(match[0], secret) {
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

// assignedValue returns the value in a match of an assignment pattern.
func assignedValue(match []string) string {
	for _, group := range match[groupQuoted:groupMore] {
		if group != "" {
			return group
		}
	}
	return ""
}

// isCount reports whether an assignment is probably a count of tokens: a short number, assigned to a name that begins
// with "token".
func isCount(assigned, content string) bool {
	digits := strings.IndexFunc(content, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
	return digits && len(content) < minDigits && strings.HasPrefix(strings.ToLower(assigned), "token")
}

// placeholder matches values that stand in place of a secret: variables, templates, calls and stars.
var placeholder = regexp.MustCompile(`^(?:\\?\$|<|%[a-z({]|\{\{|\*{3}|\.\.\.|…|x{3,}$|X{3,}$|[-_]+$|os\.|process\.env|env\.|var\.|\w+\()`)

// path matches file paths with several components.
var path = regexp.MustCompile(`^(?:~|\.{0,2})/(?:[\w.-]+/)+[\w.-]*$`)

// isSecretText reports whether text can be a secret. It returns false for placeholders and paths.
func isSecretText(text string) bool {
	return text != "" && !placeholder.MatchString(text) && !path.MatchString(text)
}

// isSecretName reports whether a name ends like the names of secrets, as in "db_password".
func isSecretName(name string) bool { return nameEnd.MatchString(name) }

var nameEnd = regexp.MustCompile(`(?i)(?:` + passwordNames + `|` + tokenNames + `|` + secretNames + `)$`)

// portAndPath matches a port at the beginning of a text, alone or in front of a slash.
var portAndPath = regexp.MustCompile(`^\d{1,5}(?:/|$)`)

// isPortAndPath reports whether text is a port and a path, such as "8080/x". In a URL such a text looks like a password.
func isPortAndPath(text string) bool {
	return portAndPath.MatchString(text) && strings.Contains(text, "/")
}

func hasDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }

// afterBlank returns the last word of text.
func afterBlank(text string) string { return text[strings.LastIndexByte(text, ' ')+1:] }

// ordinaryWords lists words that often follow a secret's name although they are not secrets.
var ordinaryWords = func() map[string]bool {
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
