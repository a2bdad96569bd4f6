// Package redact masks secrets in text that comes from agents. The mask names the kind of secret: "[masked:
// github token]".
//
// A Redactor knows two kinds of secrets:
//
//   - the values of environment variables whose names suggest a secret, and credentials in addresses,
//     both literally and in the usual encodings (values.go);
//   - the shapes of common tokens, keys, headers and assignments (shapes.go).
//
// Masking is idempotent. A JSON document stays a JSON document. The time is linear in the size of the text.
//
// The package protects against accidents. It does not find a secret that an agent hides, for example by
// spelling it backwards.
package redact
