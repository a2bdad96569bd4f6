package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShapes checks the examples of all shapes: each example is masked with its label, and no text in near is changed.
func TestShapes(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		t.Run(s.label, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, s.source)
			before, secret, found := strings.Cut(s.example, "→")
			require.True(t, found, "an example marks its secret")
			var r *Redactor
			for _, around := range []string{"%", "said: %", "%\nnext line", `{"a":"%"}`, "a\n% and more", `"{\"a\":\"x\\n%\"}"`} {
				if strings.Contains(before, `"`) && strings.Contains(around, `"`) {
					continue
				}
				text := strings.ReplaceAll(around, "%", before+secret)
				masked := r.Text(text)
				require.Contains(t, masked, maskOf(s.label), text)
				require.NotContains(t, masked, secretPart(secret), text)
				require.Equal(t, masked, r.Text(masked), "a second time changes nothing")
			}
			require.Equal(t, s.near, r.Text(s.near), "a near miss")
		})
	}
}

// secretPart returns the part of an example that certainly belongs to the secret. The example may continue
// after the secret.
func secretPart(example string) string {
	part, _, _ := strings.Cut(example, "@")
	part, _, _ = strings.Cut(part, `"`)
	part, _, _ = strings.Cut(part, "'")
	part, _, _ = strings.Cut(part, " https")
	return part
}
