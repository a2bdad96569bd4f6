package escalation

import _ "embed" // for VerdictSchema

// VerdictSchema is the JSON schema of Verdict, as passed to the CLI. DecodeVerdict checks the rules that a
// schema cannot express, such as the fields required by a status.
//
//go:embed verdict_schema.json
var VerdictSchema string
