package api

import (
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// text is a parameter that can be passed on: valid UTF-8 without NUL.
type text string

var _ huma.ResolverWithPath = (*text)(nil)

// Resolve implements huma.ResolverWithPath.
func (t *text) Resolve(_ huma.Context, prefix *huma.PathBuffer) []error {
	if !utf8.ValidString(string(*t)) {
		return []error{&huma.ErrorDetail{Message: "expected valid UTF-8", Location: prefix.String()}}
	}
	for _, r := range string(*t) {
		if r == 0 {
			return []error{&huma.ErrorDetail{Message: "expected no NUL", Location: prefix.String()}}
		}
	}
	return nil
}
