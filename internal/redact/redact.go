package redact

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

const (
	maskStart = "[masked: "
	maskEnd   = "]"
)

// maxRounds limits the number of searches in a text. The second search finds secrets that became visible by the masking
// of others. A third search is almost never needed.
const maxRounds = 6

// Redactor masks secrets. A nil *Redactor masks only texts with the shapes of secrets. It is safe for concurrent use.
type Redactor struct {
	// names holds the names of the variables with secrets.
	names map[string]bool
	// longest is the length of the longest of them.
	longest int
	values  []value
	forms   []form
	scanner *scanner
	// plain holds the values as views without blanks and quotes show them.
	plain        []form
	plainScanner *scanner
}

// New returns a Redactor that knows the secrets in environ ("NAME=value").
func New(environ []string) *Redactor {
	values := valuesOf(environ)
	r := &Redactor{names: map[string]bool{}, values: values}
	for _, v := range values {
		r.names[v.name] = true
		r.longest = max(r.longest, len(v.name))
	}
	r.forms, r.scanner = formsIn(values)
	r.plain, r.plainScanner = plainForms(values)
	return r
}

// Text returns text with every secret masked.
func (r *Redactor) Text(text string) string {
	for range maxRounds {
		found := r.find(text)
		if len(found) == 0 {
			break
		}
		text = replace(text, found)
	}
	return text
}

// margin is the number of bytes at the end of a shortened text that Beginning leaves out. A secret that was cut there
// is possibly not recognisable.
const margin = 16 << 10

// Beginning returns the beginning of a text, with secrets masked. It takes at least the first limit bytes of the text
// or, if the text is shorter, the whole text. The running time depends on limit, not on the length of the text. A
// caller may shorten the result further without exposing a part of a secret.
func (r *Redactor) Beginning(text string, limit int) string {
	if len(text) <= limit+2*margin {
		return r.Text(text)
	}
	text = text[:limit+2*margin]
	end := limit + margin
	for _, secret := range r.find(text) {
		if secret.start < end && secret.end > end {
			end = secret.end
		}
	}
	return r.Text(text[:end])
}

// span is the position of a secret in a text.
type span struct {
	start, end int
	// label describes the kind of secret. rank is the rank of that label; a label with a lower rank is more specific.
	// If two spans overlap, the label with the lower rank is used.
	label string
	rank  int
}

// find returns the secrets in text in order and without overlaps.
func (r *Redactor) find(text string) []span {
	return r.findIn(text, 0)
}

// findIn works like find. The argument nested counts the texts in base64 within which the text is.
func (r *Redactor) findIn(text string, nested int) []span {
	if len(text) < minSecret {
		return nil
	}
	var found []span
	if r != nil {
		found = slices.Concat(r.findValues(text), r.findPlain(text), r.findDumped(text))
	}
	found = slices.Concat(found, findAnnounced(text), findDecoded(text), r.findBase64(text, nested))
	return merge(withoutMasks(found, r.masks(text)))
}

// findAnnounced returns the positions of what is a secret by its shape, or by what is in front of it.
func findAnnounced(text string) []span {
	lower := lowerASCII(text)
	found := slices.Concat(findShapes(text, lower), findNamed(text, lower), findCommands(text, lower),
		findManifests(text))
	if file := withoutDiff(text); file != text {
		found = append(found, findNamed(file, lowerASCII(file))...)
	}
	return found
}

// masks returns the positions of this Redactor's masks in a text. Other text in the form of a mask, with an unknown
// label, is not a mask, because it can contain a secret.
func (r *Redactor) masks(text string) []span {
	var found []span
	longest := maxShapeLabel
	if r != nil {
		longest = max(longest, r.longest)
	}
	longest += len(maskEnd)
	for at := range occurrences(text, maskStart) {
		rest := text[at+len(maskStart):]
		label, _, closed := strings.Cut(rest[:min(len(rest), longest)], maskEnd)
		if closed && r.isLabel(label) {
			found = append(found, span{start: at, end: at + len(maskStart) + len(label) + len(maskEnd)})
		}
	}
	return found
}

func (r *Redactor) isLabel(label string) bool {
	return isShapeLabel(label) || r != nil && r.names[label]
}

// withoutMasks removes each span that is a mask, or that covers a mask only in part. It keeps a span that contains a
// whole mask and other text.
func withoutMasks(spans, masks []span) []span {
	if len(masks) == 0 {
		return spans
	}
	return slices.DeleteFunc(spans, func(s span) bool {
		next, _ := slices.BinarySearchFunc(masks, s.start, func(mask span,
			start int,
		) int {
			return cmp.Compare(mask.end, start+1)
		})
		for ; next < len(masks) && masks[next].start < s.end; next++ {
			mask := masks[next]
			if s.start > mask.start || s.end < mask.end || s.start == mask.start && s.end == mask.end {
				return true
			}
		}
		return false
	})
}

// merge joins overlapping spans.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.rank, b.rank))
	})
	var merged []span
	for _, next := range spans {
		if len(merged) == 0 || next.start >= merged[len(merged)-1].end {
			merged = append(merged, next)
			continue
		}
		last := &merged[len(merged)-1]
		last.end = max(last.end, next.end)
		if next.rank < last.rank {
			last.rank, last.label = next.rank, next.label
		}
	}
	return merged
}

// replace returns text with a mask in place of each span. A number in JSON becomes a string.
func replace(text string, spans []span) string {
	var b strings.Builder
	from := 0
	for _, secret := range spans {
		mark := ""
		if literals.MatchString(text[secret.start:secret.end]) {
			mark = markBefore(text, secret.start)
		}
		b.WriteString(text[from:secret.start])
		b.WriteString(mark + maskOf(secret.label) + mark)
		from = secret.end
	}
	b.WriteString(text[from:])
	return b.String()
}

// literals matches numbers of JSON, and lists of them with other values without quotes.
var literals = regexp.MustCompile(`^(?:(?:-?\d[-+.eE\d]*|true|false|null),?)+$`)

// markBefore returns the quotation mark, with its backslashes, after the name of the field of JSON whose value begins
// at a position; "" if there is none.
func markBefore(text string, at int) string {
	at = skipBack(text, skipBack(text, at, " \t"), "[ \t")
	if at == 0 || text[at-1] != ':' {
		return ""
	}
	at = skipBack(text, at-1, " \t")
	if at == 0 || text[at-1] != '"' {
		return ""
	}
	return text[skipBack(text, at-1, `\`):at]
}

// maskOf returns the mask for a secret with label.
func maskOf(label string) string { return maskStart + label + maskEnd }
