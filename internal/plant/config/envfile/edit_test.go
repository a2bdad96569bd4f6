package envfile_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/internal/plant/config/envfile"
)

func TestSet(t *testing.T) {
	t.Parallel()
	const content = "# mine\nA=1\n; of systemd\nexport B = 'two words' # why\n\nC=\"x\\\"y\"\nD=last"
	for name, tt := range map[string]struct{ setting, value, want string }{
		"the same value":        {"A", "1", content},
		"the same number":       {"A", "1.00", content},
		"another value":         {"A", "3", strings.Replace(content, "A=1", "A=3", 1)},
		"with blanks":           {"A", "a b", strings.Replace(content, "A=1", "A='a b'", 1)},
		"a comment behind it":   {"B", "1", strings.Replace(content, "'two words'", "1", 1)},
		"an umlaut":             {"B", "ä ö", strings.Replace(content, "'two words' # why", "'ä ö'", 1)}, // the reader would cut it
		"in double quotes":      {"C", `it's "x"`, strings.Replace(content, `"x\"y"`, `"it's \"x\""`, 1)},
		"without a line break":  {"D", "", strings.Replace(content, "D=last", "D=", 1)},
		"a new one":             {"E", "$5 #1", content + "\n\n# what\n# it is\nE='$5 #1'\n"},
		"with another's prefix": {"AA", "1", content + "\n\n# what\n# it is\nAA=1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := envfile.Set(content, envfile.Setting{Name: tt.setting, Value: tt.value, Comment: "what\nit is"})
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	_, err := envfile.Set("", envfile.Setting{Name: "A", Value: "x\ny"})
	require.EqualError(t, err, "A: a value must be on one line and have no control characters")
	lines, err := envfile.Set(`A="x\ny"`+"\n", envfile.Setting{Name: "A", Value: "x\ny"})
	require.NoError(t, err)
	require.Equal(t, `A="x\ny"`+"\n", lines, "what is there already is no problem")
	_, err = envfile.Set("nonsense\n", envfile.Setting{Name: "A", Value: "x"})
	require.ErrorContains(t, err, ":1: not a line such as NAME=value")
}

// TestSetKeepsTheRest sets values of all kinds in files of all kinds. The file reads back with these values, and every
// other line is as before.
func TestSetKeepsTheRest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "claudeops.env")
	value := rapid.StringMatching(`[ -~äß→]{0,20}`)
	rapid.Check(t, func(t *rapid.T) {
		content, want := "", map[string]string{}
		set := func(name, value string) {
			var err error
			content, err = envfile.Set(content, envfile.Setting{Name: name, Value: value, Comment: "a comment"})
			require.NoError(t, err)
			want[name] = value
		}
		equal := func(a, b string) bool {
			x, err := strconv.ParseFloat(strings.TrimSpace(a), 64)
			y, problem := strconv.ParseFloat(strings.TrimSpace(b), 64)
			return a == b || err == nil && problem == nil && x == y
		}
		for _, name := range []string{"A", "B", "C"} {
			if rapid.Bool().Draw(t, "with a line of the operator") {
				content += "# a note\nMINE_" + name + "=" + rapid.SampledFrom([]string{"1", "'a b' # c", `"\\"`}).Draw(t, "line") + "\n"
			}
			set(name, value.Draw(t, "value"))
		}
		mine := operatorsLines(content)
		for range 3 {
			set(rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "name"), value.Draw(t, "value"))
		}
		require.Equal(t, mine, operatorsLines(content))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		file, err := envfile.Read([]string{envfile.Variable + "=" + path}, isSecret)
		require.NoError(t, err, content)
		got := map[string]string{}
		for _, entry := range file.Variables {
			if !strings.HasPrefix(entry.Name, "MINE_") {
				got[entry.Name] = entry.Value
			}
		}
		require.Len(t, got, len(want))
		for name, value := range want {
			require.True(t, equal(value, got[name]), "%s: %q, and is %q", name, value, got[name])
		}
	})
}

func operatorsLines(content string) (lines []string) {
	for line := range strings.Lines(content) {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "MINE_") {
			lines = append(lines, line)
		}
	}
	return lines
}
