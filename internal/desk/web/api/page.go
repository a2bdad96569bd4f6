package api

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/desk/operations"
)

// Page is the part of a list that a request asks for.
type Page struct {
	Limit int    `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"At most this many."`
	After string `query:"after" maxLength:"4096" doc:"The next of the page before; empty for the first page."`
}

// errPage is the error for a key that no page has returned.
var errPage = operations.Invalid(errors.New("after is not a key that a page before has returned"))

// cut returns the page of a list, and the key of the next one; empty if this is the last. The key has the ID of the
// page's last item and its place. If the item has gone, the next page begins at its place.
func cut[T any](all []T, asked Page, id func(T) string) (shown []T, next string, err error) {
	start := 0
	if asked.After != "" {
		digits, last, found := strings.Cut(asked.After, "-")
		place, err := strconv.Atoi(digits)
		if err != nil || !found || place < 0 {
			return nil, "", errPage
		}
		start = min(place, len(all))
		if at := slices.IndexFunc(all, func(item T) bool { return id(item) == last }); at >= 0 {
			start = at + 1
		}
	}
	end := min(start+asked.Limit, len(all))
	shown = slices.Clone(all[start:end])
	if shown == nil {
		shown = []T{} // an empty list is [] in JSON
	}
	if end < len(all) {
		next = strconv.Itoa(end) + "-" + id(all[end-1])
	}
	return shown, next, nil
}

// ChainPath is the chain that a path names.
type ChainPath struct {
	ChainID temporalID `path:"chain_id" maxLength:"1000" doc:"The ID of a chain."`
}
