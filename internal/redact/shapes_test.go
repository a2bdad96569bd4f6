package redact

import (
	"regexp/syntax"
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
			require.LessOrEqual(t, len(s.label), maxShapeLabel)
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

// TestShapesOfGitleaks masks a text that each pattern matches, and leaves the beginning of it as it is.
func TestShapesOfGitleaks(t *testing.T) {
	t.Parallel()
	all := gitleaksShapes()
	require.Greater(t, len(all), 40)
	for _, s := range all {
		core := strings.TrimSuffix(strings.TrimPrefix(s.pattern, edge), `(?:[^A-Za-z0-9]|$)`)
		parsed, err := syntax.Parse(core, syntax.Perl)
		require.NoError(t, err, s.label)
		example := exampleOf(parsed, new(int))
		for _, text := range []string{example, "said: " + example + ", and more", `{"a":"x\\n` + example + `"}`} {
			masked := (*Redactor)(nil).Text(text)
			require.NotContains(t, masked, example[len(example)/2:], s.label)
			require.Contains(t, masked, maskStart, s.label)
		}
		near := example[:len(s.keys[0])+4]
		require.Equal(t, near, (*Redactor)(nil).Text(near), s.label)
	}
}

// exampleOf returns a text that a pattern matches. The number at lets characters vary.
func exampleOf(pattern *syntax.Regexp, at *int) string {
	var b strings.Builder
	switch pattern.Op { //nolint:exhaustive // what the table has
	case syntax.OpLiteral:
		return string(pattern.Rune)
	case syntax.OpCharClass:
		*at++
		wanted := rune(fill(64)[*at*7%64])
		for i := 0; i < len(pattern.Rune); i += 2 {
			if wanted >= pattern.Rune[i] && wanted <= pattern.Rune[i+1] {
				return string(wanted)
			}
		}
		for i := 0; i < len(pattern.Rune); i += 2 {
			if pattern.Rune[i] >= '0' {
				return string(pattern.Rune[i])
			}
		}
		return string(pattern.Rune[0])
	case syntax.OpRepeat, syntax.OpPlus:
		for range max(pattern.Min, 1) {
			b.WriteString(exampleOf(pattern.Sub[0], at))
		}
	case syntax.OpConcat, syntax.OpCapture:
		for _, part := range pattern.Sub {
			b.WriteString(exampleOf(part, at))
		}
	case syntax.OpAlternate:
		return exampleOf(pattern.Sub[0], at)
	}
	return b.String()
}
