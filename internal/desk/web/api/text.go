package api

import (
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// text is a parameter that can be passed on: valid UTF-8 without NUL.
type text string

var _ huma.ResolverWithPath = (*text)(nil)

// Resolve implements huma.ResolverWithPath.
func (t *text) Resolve(_ huma.Context, prefix *huma.PathBuffer) []error {
	if !utf8.ValidString(string(*t)) || strings.Contains(string(*t), "\x00") {
		return []error{&huma.ErrorDetail{Message: "expected UTF-8 without NUL", Location: prefix.String()}}
	}
	return nil
}

// temporalID is the ID of a chain or a schedule. Temporal's client sends it as a header, too, which has only printable
// ASCII.
type temporalID string

var _ huma.ResolverWithPath = (*temporalID)(nil)

// Resolve implements huma.ResolverWithPath.
func (i *temporalID) Resolve(_ huma.Context, prefix *huma.PathBuffer) []error {
	if !i.valid() {
		return []error{&huma.ErrorDetail{
			Message:  "expected printable ASCII, of which all IDs are",
			Location: prefix.String(),
		}}
	}
	return nil
}

func (i *temporalID) valid() bool {
	return !strings.ContainsFunc(string(*i), func(r rune) bool { return r < ' ' || r > '~' })
}
