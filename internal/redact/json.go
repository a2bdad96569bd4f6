package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// JSON returns a copy of a JSON document with the secrets in its strings and numbers masked. A valid document stays
// valid and is otherwise unchanged. A document that is not valid is masked in the same way as by Text. If something
// that ends like the name of a secret announces a string or a long number, the whole is masked: the name of its field
// or list, of the field whose "value" it is, the field "name" in front of a field "value", or an option in front of it
// in a list.
func (r *Redactor) JSON(document []byte) []byte {
	if document == nil {
		return nil
	}
	if !json.Valid(document) {
		return []byte(r.Text(string(document)))
	}
	var masked bytes.Buffer
	masked.Grow(len(document))
	var where position
	for at := 0; at < len(document); {
		if c := document[at]; c == '-' || isDigit(c) {
			end := len(document) - len(bytes.TrimLeft(document[at:], "-+.eE0123456789"))
			masked.Write(r.maskNumber(document[at:end], where.ofSecret("")))
			at = end
			continue
		}
		if document[at] != '"' {
			where.pass(document[at])
			masked.WriteByte(document[at])
			at++
			continue
		}
		end := stringEnd(document, at)
		text, isName := decodeString(document[at:end]), isFieldName(document, end)
		clean := r.Text(text)
		if !isName && where.ofSecret(text) {
			clean = r.maskField(text)
		}
		if clean == text {
			masked.Write(document[at:end])
		} else {
			masked.Write(encodeString(clean))
		}
		if where.field = ""; isName {
			where.field = text
		}
		at = end
	}
	return masked.Bytes()
}

// maskNumber returns the mask of a number that is a secret, as a string; otherwise the number.
func (r *Redactor) maskNumber(written []byte, announced bool) []byte {
	text := string(written)
	clean := r.Text(text)
	if announced && len(text) >= minSecret && clean == text {
		clean = maskOf(fieldLabel)
	}
	if clean == text {
		return written
	}
	return encodeString(clean)
}

// position is a position in a JSON document.
type position struct {
	// field is the name of the field whose value is next, and outer that of the list or object around it. list means
	// that it is a list.
	field, outer string
	list         bool
	// announced means that a secret is next: a field "name" of this object says so, or an option in front.
	announced bool
}

// pass moves the position behind a character that belongs to no string.
func (p *position) pass(c byte) {
	switch c {
	case '{', '[':
		*p = position{outer: cmp.Or(p.field, p.outer), list: c == '['}
	case '}', ']':
		*p = position{}
	case ',':
		p.field = ""
	}
}

// ofSecret reports whether the string at the position is a secret as a whole. It notes whether the string announces
// one.
func (p *position) ofSecret(text string) bool {
	is := isSecretName(p.field) || (p.list || isField(p.field, "value")) && isSecretName(p.outer) ||
		p.announced && (p.field == "" || isField(p.field, "value"))
	p.announced = isField(p.field, "name", "key") && isSecretName(text) ||
		p.field == "" && strings.HasPrefix(text, "-") && isSecretName(strings.TrimLeft(text, "-"))
	return is
}

// isField reports whether a field has one of the names, in any case.
func isField(field string, names ...string) bool { return slices.Contains(names, lowerASCII(field)) }

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
