package redact

import (
	"regexp"
	"strings"
)

// minAssigned is the minimum length of an assigned secret, in bytes. It can be low, because such a secret is masked
// only next to its name.
const minAssigned = 4

// begins matches the beginnings of values that stand in place of a secret: variables, templates, calls and stars.
// placeholder matches these, and whole values of the kind.
var (
	begins      = regexp.MustCompile(`^(?:` + templates + `)`)
	placeholder = regexp.MustCompile(`^(?:` + templates + `|x{3,}$|X{3,}$|[-_]+$)`)
)

const templates = `\\?\$|<|%[a-z({]|\{\{|\*{3}|\.\.\.|…|os\.|process\.env|env\.|var\.|` +
	`[\w.]+\(|data\.\w+\.|\((?:sensitive|known|hidden|none|Read-Host)\b`

// path matches file paths with several components.
var path = regexp.MustCompile(`^(?:~|\.{0,2})/(?:[\w.-]+/)+[\w.-]*$`)

// isSecretText reports whether text can be a secret. It returns false for placeholders and paths.
func isSecretText(text string) bool {
	return text != "" && !placeholder.MatchString(text) && !path.MatchString(text)
}

// portAndPath matches a port at the beginning of a text, alone or in front of a slash.
var portAndPath = regexp.MustCompile(`^\d{1,5}(?:/|$)`)

// isPortAndPath reports whether text is a port and a path, such as "8080/x". In a URL such a text looks like a
// password.
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
		option options parameter argument field fields flag for and from with instead used using string str text range await self
		this that which when will can must should may not sent saved stored entry entries pair pairs
		never always only same different unavailable available created deleted exists secrets tokens ok`) {
		words[w] = true
	}
	return words
}()
