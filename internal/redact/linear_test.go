package redact

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// masking returns the shortest of a few times that masking a text takes.
func masking(text string) time.Duration {
	r := New([]string{"DB_PASSWORD=hunter22-1"})
	shortest := time.Duration(1<<63 - 1)
	for range 3 {
		start := time.Now()
		_ = r.Text(text)
		shortest = min(shortest, time.Since(start))
	}
	return shortest
}

// TestHostileSizes masks texts that make masking slow. Four times the text takes about four times as long, and not sixteen times.
func TestHostileSizes(t *testing.T) {
	for name, part := range map[string]string{
		"beginnings of masks": "[masked: ", "beginnings of labels": "[masked: token", "separators": "psk=$,!,!,!,!,!,!", "base64": "cGFzc3dvcmQ9JHgK",
	} {
		const size = 256 << 10
		once, more := masking(strings.Repeat(part, size/len(part))), masking(strings.Repeat(part, 4*size/len(part)))
		require.Less(t, more, 9*once, name)
	}
}

// TestHostileValues masks names with values whose end is far away. It takes not much longer than with blanks in place of what makes it
// far: then each value ends at once.
func TestHostileValues(t *testing.T) {
	blanks := strings.NewReplacer(",", " ", ";", " ", "s:", "s ")
	for _, part := range []string{"psk=$,!,!,!,!,!,!", "token=$,!", "pwd=a,!,!,!,!", "psk:a;!;!;!;!;!", "pwd=,!,!,!,!", "pwd($,!", "- passwords:\n"} {
		text := strings.Repeat(part, (64<<10)/len(part))
		require.Less(t, masking(text), 16*masking(blanks.Replace(text)), part)
	}
}
