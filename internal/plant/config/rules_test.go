package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]RuleList{
		"Read":                            {"Read"},
		"Bash(docker ps:*),Read(./**)":    {"Bash(docker ps:*)", "Read(./**)"},
		"Bash(echo a,b),Bash(f(x,y):*)":   {"Bash(echo a,b)", "Bash(f(x,y):*)"},
		" Bash ,\n\tRead\n,, Grep ,":      {"Bash", "Read", "Grep"},
		`Bash(echo \(:*),Read`:            {`Bash(echo \(:*)`, "Read"},
		"mcp__my-server__look,Read":       {"mcp__my-server__look", "Read"},
		"Bash(grep 'ü':*),Edit(./a b/**)": {"Bash(grep 'ü':*)", "Edit(./a b/**)"},
	} {
		got, err := parseRules(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"Bash(", "Bash)", "Bash)(", "Bash()", "*", "Bash Read", "Bash(a)b", "1Bash", `Bash(a\)`} {
		_, err := parseRules(text)
		require.Error(t, err, text)
	}
}

// FuzzParseRules checks that the parser does not panic, and that its items are rules. Formatting a result with String
// and parsing it again must give the same result.
func FuzzParseRules(f *testing.F) {
	for _, seed := range []string{"Bash(docker ps:*),Read(./**)", "none", "a,,b", `Bash(\),\()`, "((", "Bash(a\n,b)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseRules(text)
		if err != nil {
			return
		}
		for _, rule := range list {
			require.Regexp(t, ruleShape, rule)
		}
		again, err := parseRules(list.String())
		require.NoError(t, err)
		require.Equal(t, strings.Join(list, "\x00"), strings.Join(again, "\x00"))
	})
}
