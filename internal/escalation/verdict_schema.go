package escalation

import (
	"bytes"
	_ "embed" // for VerdictSchema
	"encoding/json"
)

// VerdictSchema is the JSON schema of Verdict, as passed to the CLI. DecodeVerdict also checks rules that a schema
// cannot express, such as the fields that a status requires.
var VerdictSchema = compactJSON(verdictSchema)

//go:embed verdict_schema.json
var verdictSchema []byte

// compactJSON returns a document without white space, because each launch sends the schema. A test decodes the result.
func compactJSON(document []byte) string {
	var compact bytes.Buffer
	_ = json.Compact(&compact, document)
	return compact.String()
}
