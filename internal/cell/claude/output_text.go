package claude

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claudeops/claudeops/internal/redact"
)

// outputText collects the structured output of the main thread while the model writes it. Its zero value collects
// nothing.
type outputText struct {
	// field names the field whose text is wanted; empty if none is.
	field string
	mask  *redact.Redactor
	// document is the output so far. writing reports whether the model writes it now.
	document []byte
	writing  bool
}

// maxDocument limits the collected part of the structured output. Its escape sequences are up to six times as long as
// the text.
const maxDocument = 6 * MaxText

// wants reports whether a line of the main thread's stream must be decoded because of the structured output.
func (o *outputText) wants(line []byte) bool {
	return o.field != "" &&
		(o.writing && bytes.Contains(line, []byte(streamBlockDelta)) || bytes.Contains(line, []byte(streamBlockStart)))
}

// begin notes the beginning of a block. A call for the structured output replaces the one before it.
func (o *outputText) begin(block contentBlock) {
	o.writing = block.Type == blockToolUse && block.Name == structuredOutputTool
	if o.writing {
		o.document = nil
	}
}

// add adds a piece of the structured output.
func (o *outputText) add(piece string) {
	if o.writing {
		o.document = append(o.document, piece[:min(len(piece), maxDocument-len(o.document))]...)
	}
}

// text returns the beginning of the field, with secrets masked.
func (o *outputText) text() string {
	if len(o.document) == 0 {
		return ""
	}
	text := o.mask.Settled(unfinishedField(o.document, o.field))
	return strings.ToValidUTF8(text[:min(len(text), MaxText)], "")
}

// unfinishedField returns the text of a field in the beginning of a JSON object, as far as it is there.
func unfinishedField(document []byte, field string) string {
	decoder := json.NewDecoder(bytes.NewReader(document))
	if opening, err := decoder.Token(); err != nil || opening != json.Delim('{') {
		return ""
	}
	for {
		key, err := decoder.Token()
		if err != nil || key == json.Delim('}') {
			return ""
		}
		if key == field {
			return unfinishedString(document[decoder.InputOffset():])
		}
		var skipped json.RawMessage
		if decoder.Decode(&skipped) != nil {
			return ""
		}
	}
}

// maxEscape is the length of the longest escape sequence in a JSON string, in bytes.
const maxEscape = 6

// unfinishedString returns the text of the JSON string that follows a colon, as far as it is there.
func unfinishedString(rest []byte) string {
	_, literal, _ := bytes.Cut(rest, []byte(`"`))
	var text string
	for cut := range min(maxEscape, len(literal)+1) { // an escape sequence at the end can be incomplete
		quoted := append([]byte(`"`), literal[:len(literal)-cut]...)
		if json.NewDecoder(bytes.NewReader(append(quoted, '"'))).Decode(&text) == nil {
			return text
		}
	}
	return ""
}
