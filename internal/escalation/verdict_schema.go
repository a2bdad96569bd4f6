package escalation

import _ "embed" // for VerdictSchema

// VerdictSchema is the JSON schema of Verdict, as passed to the CLI. DecodeVerdict also checks rules that a schema
// cannot express, such as the fields that a status requires.
//
//go:embed verdict_schema.json
var VerdictSchema string
