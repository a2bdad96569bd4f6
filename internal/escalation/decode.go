package escalation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DecodeOutput decodes the structured output of an agent: one JSON object of at most limit bytes, without unknown
// fields. The function problems lists the defects of the object. Errors wrap invalid and use words that the agent can
// act on.
func DecodeOutput[T any](raw []byte, limit int, invalid error, problems func(*T) []string) (T, error) {
	var none, output T
	if len(raw) > limit {
		return none, fmt.Errorf("%w: %d bytes, and at most %d are allowed", invalid, len(raw), limit)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&output); err != nil {
		return none, fmt.Errorf("%w: %w", invalid, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return none, fmt.Errorf("%w: something follows after the JSON object", invalid)
	}
	if found := problems(&output); len(found) > 0 {
		return none, fmt.Errorf("%w: %s", invalid, strings.Join(found, "; "))
	}
	return output, nil
}
