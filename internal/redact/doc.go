// Package redact masks secrets in text that comes from agents, and tells what each one was:
// "[masked: github token]".
//
// A Redactor knows two kinds of secrets:
//
//   - the values of variables in the environment that are named like a secret, and credentials in
//     addresses, as they are and in the usual encodings (values.go);
//   - the shapes of common tokens, keys, headers and assignments (shapes.go).
//
// What it returns is safe to mask again: the second time changes nothing. A JSON document stays one. The
// time is linear in the size of the text.
//
// It guards against accidents. An agent that wants to hide a secret can spell it backwards.
package redact
