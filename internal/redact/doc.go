// Package redact masks secrets in text that comes from agents. The mask names the kind of secret: "[masked: github
// token]".
//
// A Redactor masks two kinds of secrets:
//
//   - the values of environment variables whose names suggest a secret, and the credentials in URLs,
//     both literally and in the usual encodings (values.go);
//   - texts with the shapes of common tokens, keys, headers and assignments (shapes.go).
//
// Masking a masked text again changes nothing. A JSON document stays a JSON document. The running time is linear in the
// size of the text.
//
// The package protects against accidents. It does not find a secret that an agent hides, for example by spelling it
// backwards.
package redact
