package operations

import (
	"errors"

	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// maxChainID limits a printed chain ID, in characters. Temporal's own limit is the same.
	maxChainID = 1_000
	// maxError limits an error that can contain words of agents, in characters.
	maxError = 1_000
)

// line returns text as one line of at most limit characters, without control characters.
func line(text string, limit int) string { return plaintext.Cut(plaintext.Line(text), limit) }

func printableID(id string) string { return line(id, maxChainID) }

// printable returns an error whose text is one line without control characters.
func printable(err error) error { return errors.New(line(err.Error(), maxError)) }
