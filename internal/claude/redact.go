package claude

import (
	"regexp"
	"strings"
)

// minSecretBytes is the length from which a value is taken for a secret. Replacing shorter ones,
// such as "1", would garble everything and protect nothing.
const minSecretBytes = 6

// secretName is what the names of variables with secrets in them look like.
var secretName = regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIAL|HEADERS|_PROXY$`)

// redactor returns a function that replaces the values of credentials in environ by their names.
func redactor(environ []string) func(string) string {
	var pairs []string
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if len(value) >= minSecretBytes && secretName.MatchString(name) {
			pairs = append(pairs, value, "["+name+"]")
		}
	}
	return strings.NewReplacer(pairs...).Replace
}
