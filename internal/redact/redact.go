package redact

import (
	"cmp"
	"slices"
	"strings"
)

const (
	maskStart = "[masked: "
	maskEnd   = "]"
)

// maxRounds bounds how often a text is searched. A second round finds what became visible by the first,
// and almost always is the last.
const maxRounds = 6

// Redactor masks secrets. A nil *Redactor knows the shapes alone. It is safe for concurrent use.
type Redactor struct {
	// names are those of the variables with secrets.
	names   map[string]bool
	forms   []form
	scanner *scanner
}

// New returns a Redactor that knows the secrets in environ ("NAME=value").
func New(environ []string) *Redactor {
	values := valuesOf(environ)
	r := &Redactor{names: map[string]bool{}}
	for _, v := range values {
		r.names[v.name] = true
	}
	r.forms, r.scanner = formsIn(values)
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

// margin is how much of the end of a cut text Beginning leaves out: the beginning of a secret may stand
// there that cannot be recognised without its end.
const margin = 16 << 10

// Beginning returns the beginning of text, of at least limit bytes if it has them, masked. However long the
// text is, the work is bounded by limit. A caller that cuts the result cuts no secret.
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

// span is a secret in a text.
type span struct {
	start, end int
	// label says what it is, and rank how much that tells: the lowest of two spans that overlap is used.
	label string
	rank  int
}

// find returns the secrets in text in their order, none overlapping another.
func (r *Redactor) find(text string) []span {
	if len(text) < minSecret {
		return nil
	}
	var found []span
	if r != nil {
		found = r.findValues(text)
	}
	found = append(found, findShapes(text)...)
	return merge(withoutMasks(found, r.masks(text)))
}

// masks returns where masks of this Redactor stand in text. What only looks like one may hide a secret.
func (r *Redactor) masks(text string) []span {
	var found []span
	for at := range occurrences(text, maskStart) {
		label, _, closed := strings.Cut(text[at+len(maskStart):], maskEnd)
		if closed && r.isLabel(label) {
			found = append(found, span{start: at, end: at + len(maskStart) + len(label) + len(maskEnd)})
		}
	}
	return found
}

func (r *Redactor) isLabel(label string) bool {
	return isShapeLabel(label) || r != nil && r.names[label]
}

// withoutMasks returns the spans that take no part of a mask, or more than it.
func withoutMasks(spans, masks []span) []span {
	if len(masks) == 0 {
		return spans
	}
	return slices.DeleteFunc(spans, func(s span) bool {
		next, _ := slices.BinarySearchFunc(masks, s.start, func(mask span, start int) int { return cmp.Compare(mask.end, start+1) })
		for ; next < len(masks) && masks[next].start < s.end; next++ {
			mask := masks[next]
			if s.start > mask.start || s.end < mask.end || s.start == mask.start && s.end == mask.end {
				return true
			}
		}
		return false
	})
}

// merge joins spans that overlap.
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

// replace returns text with each of the spans as a mask.
func replace(text string, spans []span) string {
	var b strings.Builder
	from := 0
	for _, secret := range spans {
		b.WriteString(text[from:secret.start])
		b.WriteString(maskOf(secret.label))
		from = secret.end
	}
	b.WriteString(text[from:])
	return b.String()
}

// maskOf returns the mask of a secret.
func maskOf(label string) string { return maskStart + label + maskEnd }
