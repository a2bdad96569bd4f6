package redact

import (
	"bytes"
	"encoding/json"
)

// JSON returns a copy of a JSON document with the secrets in its strings masked. A valid document stays valid and is
// otherwise unchanged. A document that is not valid is masked in the same way as by Text. If the name of a field ends
// like the name of a secret, such as "password", the whole string in that field is masked.
func (r *Redactor) JSON(document []byte) []byte {
	if document == nil {
		return nil
	}
	if !json.Valid(document) {
		return []byte(r.Text(string(document)))
	}
	var masked bytes.Buffer
	masked.Grow(len(document))
	name := "" // name of the field whose value is next
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
			clean = r.maskField(text)
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

// maskField masks the value of a field whose name suggests a secret.
func (r *Redactor) maskField(text string) string {
	clean := r.Text(text)
	if clean != text || len(text) < minAssigned || !isSecretText(text) || ordinaryWords[lowerASCII(text)] {
		return clean
	}
	return maskOf(fieldLabel)
}

// stringEnd returns the end of the string that begins at position start in the document. The document must be valid
// JSON.
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

// isFieldName reports whether the string that ends at position end in the document is the name of a field.
func isFieldName(document []byte, end int) bool {
	rest := bytes.TrimLeft(document[end:min(len(document), end+maxBlanks)], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// maxBlanks limits the number of blanks between a field's name and its colon.
const maxBlanks = 64

// decodeString returns the text of a JSON string.
func decodeString(written []byte) string {
	if bytes.IndexByte(written, '\\') < 0 {
		return string(written[1 : len(written)-1])
	}
	var text string
	_ = json.Unmarshal(written, &text) // the document was validated
	return text
}

// encodeString returns text as a JSON string without escaping "<", ">" and "&".
func encodeString(text string) []byte {
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // encoding a string cannot fail
	return bytes.TrimSpace(written.Bytes())
}
