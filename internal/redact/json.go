package redact

import (
	"bytes"
	"encoding/json"
)

// JSON returns document with the secrets in its strings masked. What was a JSON document stays one, with all
// else as it was; what is none is masked as text. A string that belongs to a name such as "password" is masked as a
// whole.
func (r *Redactor) JSON(document []byte) []byte {
	if document == nil {
		return nil
	}
	if !json.Valid(document) {
		return []byte(r.Text(string(document)))
	}
	var masked bytes.Buffer
	masked.Grow(len(document))
	name := "" // of the field whose value is next
	for at := 0; at < len(document); {
		if document[at] != '"' {
			if c := document[at]; c == ',' || c == '{' || c == '[' {
				name = ""
			}
			masked.WriteByte(document[at])
			at++
			continue
		}
		end := stringEnd(document, at)
		text, isName := decodeString(document[at:end]), isFieldName(document, end)
		clean := r.Text(text)
		if !isName && isSecretName(name) {
			clean = r.named(text)
		}
		if clean == text {
			masked.Write(document[at:end])
		} else {
			masked.Write(encodeString(clean))
		}
		if name = ""; isName {
			name = text
		}
		at = end
	}
	return masked.Bytes()
}

// named returns the value of a field that is named like a secret, masked.
func (r *Redactor) named(text string) string {
	clean := r.Text(text)
	if clean != text || len(text) < minAssigned || !isSecretText(text) || ordinary[lowerASCII(text)] {
		return clean
	}
	return maskOf(fieldLabel)
}

// fieldLabel is the label of what a name of JSON says to be a secret.
const fieldLabel = "secret"

// stringEnd returns where the string ends that begins at start of a valid document.
func stringEnd(document []byte, start int) int {
	for at := start + 1; ; at++ {
		switch document[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
}

// isFieldName reports whether the string that ends at end is the name of a field.
func isFieldName(document []byte, end int) bool {
	rest := bytes.TrimLeft(document[end:min(len(document), end+maxBlanks)], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// maxBlanks is how many blanks may follow a field's name for it to be recognised.
const maxBlanks = 64

// decodeString returns the text of a JSON string.
func decodeString(written []byte) string {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written[1 : len(written)-1])
	}
	var text string
	_ = json.Unmarshal(written, &text) // it is valid
	return text
}

// encodeString returns text as a JSON string, with "<", ">" and "&" as they are.
func encodeString(text string) []byte {
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always encodes
	return bytes.TrimSpace(written.Bytes())
}
