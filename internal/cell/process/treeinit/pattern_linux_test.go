package treeinit

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/stretchr/testify/require"
)

// TestMatchesAsDoublestar compares the matching of patterns with the package whose patterns a policy has. What matches
// there must match here. In a few cases that package does not match what its documentation promises: /[!b]*/** and /ä,
// for instance.
func TestMatchesAsDoublestar(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	name := func(parts ...string) (text string) {
		for range 1 + random.IntN(3) {
			text += pick(parts...)
		}
		return text
	}
	matched, differ := 0, 0
	for range 300_000 {
		var pattern, path strings.Builder
		for range 1 + random.IntN(4) {
			pattern.WriteString("/" + pick("**", "*", name("a", "b", ".", "*", "?", "[ab]", "[^.-b]", `\*`, "ä")))
		}
		for range 1 + random.IntN(4) {
			path.WriteString("/" + name("a", "b", ".", "*", "ä", "ab"))
		}
		for _, each := range []string{pattern.String(), strings.TrimPrefix(pattern.String(), "/")} {
			want, err := doublestar.Match(each, path.String())
			require.NoError(t, err, each)
			list := newPatterns([]string{each})
			got := matches(each, path.String())
			require.Equal(t, got, list.match(path.String()), "%s %s, in a list", each, path.String())
			if want {
				require.True(t, got, "%s %s", each, path.String())
				matched++
			}
			if want != got {
				differ++
			}
		}
	}
	require.Greater(t, matched, 10_000)
	require.Less(t, differ, matched/100)
}

// TestMatches checks the matching of patterns such as those of the shipped policy.
func TestMatches(t *testing.T) {
	t.Parallel()
	for pattern, paths := range map[string]struct{ matching, other []string }{
		"**/.env":           {[]string{"/.env", "/a/.env", "/a/b/.env"}, []string{"/a/.envx", "/a/x.env", "/.env/a"}},
		"**/*.key":          {[]string{"/.key", "/a/b.key"}, []string{"/a/b.keys", "/b.key/a"}},
		"**/secrets/**":     {[]string{"/secrets", "/a/secrets/b/c"}, []string{"/a/secrets2/b", "/asecrets/b"}},
		"/proc/*/maps/**":   {[]string{"/proc/1/maps"}, []string{"/proc/1/2/maps", "/a/proc/1/maps", "/proc/maps"}},
		"/proc/**/mem":      {[]string{"/proc/mem", "/proc/1/task/2/mem"}, []string{"/proc/meminfo", "/proc/1/mem/x"}},
		"**/.config/gh/**":  {[]string{"/root/.config/gh/hosts.yml"}, []string{"/root/.config/ghx", "/root/x.config/gh"}},
		"/etc/x[!0-9]?[ab]": {[]string{"/etc/xcdb"}, []string{"/etc/x1db", "/etc/xcd", "/etc/xcdbb"}},
		"/dev/sd**":         {[]string{"/dev/sd", "/dev/sda1"}, []string{"/dev/sd/a", "/dev/s"}},
	} {
		list := newPatterns([]string{pattern})
		for _, path := range paths.matching {
			require.True(t, list.match(path), "%s %s", pattern, path)
		}
		for _, path := range paths.other {
			require.False(t, list.match(path), "%s %s", pattern, path)
		}
	}
}

// TestKeptFilesHaveNoCase checks that a kept file is kept in every spelling that a file system without case takes for
// its name.
func TestKeptFilesHaveNoCase(t *testing.T) {
	t.Parallel()
	rules := newFileRules(&Sandbox{Opens: &Opens{Kept: []string{"**/CLAUDE.md", "**/.vscode/**", "/srv/*.YML"}, Secret: []string{"**/.env"}}})
	nobody := func() string { return "" }
	for _, path := range []string{"/a/CLAUDE.md", "/a/claude.MD", "/.VSCODE/x", "/a/.vſcode", "/srv/A.yml", "/srv/ä.Yml"} {
		require.NotEmpty(t, rules.refuses(path, toWrite, nobody), path)
		require.Empty(t, rules.refuses(path, toRead, nobody), path)
	}
	require.Empty(t, rules.refuses("/a/CLAUDE.mdx", toWrite, nobody))
	require.Empty(t, rules.refuses("/a/.ENV", toRead, nobody), "reading is not changing")
	require.Equal(t, "/ä\xff/docker", folded("/ä\xff/DOC\u212aER"))
}
