// Package redact masks secrets in text that comes from agents. The mask names the kind of secret: "[masked: github
// token]".
//
// A Redactor masks two kinds of secrets:
//
//   - the values of environment variables whose names suggest a secret, and the credentials in URLs, literally, in base64 and
//     hexadecimal digits (values.go), and under any mixture of escapes and quotes (view.go);
//   - texts with the shapes of common tokens, keys and headers (shapes.go, gitleaks.txt), and what a name or a command announces
//     (names.go, named.go, layout.go, commands.go), also with its escapes decoded, and in base64 (base64.go).
//
// Masking a masked text again changes nothing. A JSON document stays a JSON document. The running time is linear in the
// size of the text.
//
// The package protects against accidents. It does not find a secret that an agent hides, for example by spelling it
// backwards.
package redact
