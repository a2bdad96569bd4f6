package escalation

import _ "embed" // for VerdictSchema

// VerdictSchema is the JSON schema of Verdict, as the CLI takes it. What it cannot say,
// such as which fields a status needs, DecodeVerdict checks.
//
//go:embed verdict_schema.json
var VerdictSchema string
