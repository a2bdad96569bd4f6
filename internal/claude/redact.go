package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// minSecretBytes is the length from which a value is taken for a secret. Replacing shorter ones,
// such as "1", would garble everything and protect nothing.
const minSecretBytes = 6

// secretName is what the names of variables with secrets in them look like.
var secretName = regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|HEADERS|_PASS$|_PWD$|_DSN$|_PROXY$`)

// redactor returns a function that replaces the values of credentials in environ by their names,
// as they are and as they stand in JSON. Credentials in an address count, whatever its variable is called.
func redactor(environ []string) func(string) string {
	names := map[string]string{} // by secret
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		secrets := addressSecrets(value)
		if secretName.MatchString(name) {
			secrets = append(secrets, value)
		}
		for _, secret := range secrets {
			if len(secret) >= minSecretBytes {
				names[secret], names[quoted(secret)] = name, name
			}
		}
	}
	secrets := make([]string, 0, len(names))
	for secret := range names {
		secrets = append(secrets, secret)
	}
	// A secret can be part of another one. The longer one goes first.
	slices.SortFunc(secrets, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, "["+names[secret]+"]")
	}
	return strings.NewReplacer(pairs...).Replace
}

// addressSecrets returns what is secret in a URL: its password as written and as meant, and both
// with the name before it.
func addressSecrets(address string) []string {
	_, rest, found := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	at := strings.LastIndexByte(rest, '@')
	if !found || at < 0 {
		return nil
	}
	written := rest[:at]
	_, password, _ := strings.Cut(written, ":")
	secrets := []string{written, password}
	if meant, err := url.PathUnescape(password); err == nil {
		secrets = append(secrets, meant)
	}
	return secrets
}

// quoted returns text as it stands in a JSON string.
func quoted(text string) string {
	whole := encodeJSON(text)
	return string(whole[1 : len(whole)-1])
}

// encodeJSON is json.Marshal for what cannot fail, and leaves "<", ">" and "&" as they are.
func encodeJSON(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // strings and maps of strings only
	return bytes.TrimSpace(text.Bytes())
}

// redactJSON removes credentials from text, which is JSON and stays so.
func redactJSON(text []byte, redact func(string) string) []byte {
	if text == nil || redact == nil {
		return text
	}
	clean := []byte(redact(string(text)))
	if json.Valid(text) && !json.Valid(clean) {
		return encodeJSON(string(clean))
	}
	return clean
}
