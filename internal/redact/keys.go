package redact

import "regexp"

// keyStarts lists texts that the body of a private key begins with, or has near its beginning. They are the base64
// forms of the version number and the algorithm, which precede the secret.
var keyStarts = []string{
	"b3BlbnNzaC1rZXktdjE", "IBAAK", "IBADAN", "CAQAwBQYDK2V", "CAQEwBQYDK2V", "AgEAMB", "HcCAQEE", "AgEBBD",
	"BgkqhkiG9w0BBQ",
}

// keyStart matches the beginning of a key's body in base64: OpenSSH's form, RSA keys, and keys of elliptic curves in
// their own form, in PKCS #8, and encrypted (RFC 8017, 5915, 5958, 8410).
var keyStart = regexp.MustCompile(`^(?:b3BlbnNzaC1rZXktdjE|MII[B-J][A-Za-z0-9+/][AQgw]IBA[AD]|M[A-Z][A-Za-z0-9+/]{0,2}CAQ[AE]wBQYDK2V|` +
	`M[A-Z][A-Za-z0-9+/]{0,2}AgEAM[BC]|MHcCAQEE|MIG[A-Za-z0-9+/]AgEBBD|MI[A-Za-z0-9+/]{6,10}BgkqhkiG9w0BBQ)`)

// maxKeyStart is the largest distance between the beginning of a body and a text of keyStarts.
const maxKeyStart = 16

// minKeyBody is the length of the shortest body: a key of Ed25519 has 64 characters.
const minKeyBody = 56

// findKeyBodies returns the positions of private keys whose first line is missing, as in the output of tail. A key that
// lacks more than that is found by findBlocks.
func findKeyBodies(text string) []span {
	var found []span
	for _, part := range keyStarts {
		last := 0
		for at := range occurrences(text, part) {
			from := at
			for from > last && at-from < maxKeyStart && isBase64(text[from-1]) {
				from--
			}
			for ; at >= last && from <= at; from++ {
				if !keyStart.MatchString(text[from:min(len(text), from+2*maxKeyStart)]) {
					continue
				}
				if end := bodyEnd(text, from); end-from >= minKeyBody {
					found, last = append(found, span{from, end, pemLabel, 0}), end
				}
				break
			}
		}
	}
	return found
}

// bodyLine matches a line of a body after the first, and the line break in front of it, which can be escaped.
var bodyLine = regexp.MustCompile(`^(?:\r?\n|(?:\\r)?\\n)[ \t]*` +
	`([A-Za-z0-9+/]{20,}={0,2}|[A-Za-z0-9+/]{1,19}={1,2}|[A-Za-z0-9+/]{4,19})(\r?\n|\\|"|-|$)`)

// bodyEnd returns the end of a body that begins at from.
func bodyEnd(text string, from int) int {
	end := from
	for end < len(text) && (isBase64(text[end]) || text[end] == '=') {
		end++
	}
	for end-from < maxPEM {
		line := bodyLine.FindStringSubmatchIndex(text[end:])
		if line == nil {
			break
		}
		end += line[3]
	}
	return end
}
