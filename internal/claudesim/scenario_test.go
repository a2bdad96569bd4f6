package claudesim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// TestDocumentedExample checks that the example in the package documentation can be played.
func TestDocumentedExample(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var example strings.Builder
	for line := range strings.Lines(string(source)) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok && !strings.Contains(line, "+-->") && !strings.Contains(line, "|") && !strings.Contains(line, "----+") {
			example.WriteString(code)
		}
	}
	s, err := claudesim.ParseScenario([]byte(example.String()))
	require.NoError(t, err)
	require.Len(t, s.Turns, 2)
	require.Equal(t, 429, s.Turns[1].Replies[0].Error.Status)
	require.Equal(t, 20*time.Millisecond, s.Turns[1].Replies[0].Delay.Std())
}

func TestParseScenarioRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, want string }{
		{"nothing", `{}`, "there are no turns"},
		{"unknown field", `{"turns":[{"replies":[{"txt":"hi"}]}]}`, `unknown field "txt"`},
		{"two documents", `{"turns":[{"replies":[{"text":"hi"}]}]} {}`, "data follows"},
		{"version", `{"version":"1.0","turns":[{"replies":[{"text":"hi"}]}]}`, `version "1.0" is not`},
		{"silence", `{"turns":[{"name":"x","replies":[{}]}]}`, "turn 1 (x): reply 1: it says nothing"},
		{"no replies", `{"turns":[{"replies":[]}]}`, "turn 1: there are no replies"},
		{"call without an object", `{"turns":[{"replies":[{"calls":[{"name":"Bash","input":"ls"}]}]}]}`, "the input of the Bash call is not a JSON object"},
		{"structured text", `{"turns":[{"replies":[{"structured":"ok"}]}]}`, "structured is not a JSON object"},
		{"status", `{"turns":[{"replies":[{"error":{"status":200}}]}]}`, "error status 200 is no HTTP error"},
		{"failing once without an answer", `{"turns":[{"replies":[{"error":{"status":429,"times":1}}]}]}`, "it says nothing"},
		{"hang", `{"turns":[{"replies":[{"text":"a"}],"fault":{"hang":"now"}}]}`, `hang "now" is not one of`},
		{"cost", `{"turns":[{"replies":[{"text":"a"}],"fault":{"cost":"x"}}]}`, `cost "x" is not one of`},
		{"duration", `{"turns":[{"replies":[{"text":"a","delay":"soon"}]}]}`, `duration "soon"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := claudesim.ParseScenario([]byte(c.file))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestValidateReportsEveryProblem(t *testing.T) {
	t.Parallel()
	err := claudesim.Play(claudesim.Always(), claudesim.Always(claudesim.Reply{})).As("0.1").Validate()
	require.ErrorContains(t, err, "version")
	require.ErrorContains(t, err, "turn 1: there are no replies")
	require.ErrorContains(t, err, "turn 2: reply 1")
}

func TestInstallReplacesAnEarlierOne(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bin")
	for _, text := range []string{"first", "second"} {
		path, err := claudesim.Install(dir, claudesim.Play(claudesim.Always(claudesim.Say(text))))
		require.NoError(t, err)
		out := subject{path: path}.launch(t, place{home: t.TempDir(), dir: t.TempDir()}, launch{prompt: "hi"})
		require.Contains(t, out.stdout, text)
	}
	launches, err := claudesim.Launches(dir)
	require.NoError(t, err)
	require.Len(t, launches, 1)
}

func TestInstallRefusesWhatCannotBePlayed(t *testing.T) {
	t.Parallel()
	_, err := claudesim.Install(t.TempDir(), claudesim.Scenario{})
	require.ErrorContains(t, err, "there are no turns")
}

// TestNearest checks which release is chosen for a CLI of another version.
func TestNearest(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]claudesim.Version{
		"1.9.999": claudesim.VersionOld,
		"2.1.286": claudesim.VersionOld,
		"2.1.331": claudesim.VersionOld,
		"2.1.332": claudesim.VersionNew,
		"2.1.333": claudesim.VersionNew,
		"2.2.0":   claudesim.VersionNew,
		"10.0.0":  claudesim.VersionNew,
	} {
		got, err := claudesim.Nearest(number)
		require.NoError(t, err)
		require.Equal(t, want, got, number)
	}
	_, err := claudesim.Nearest("latest")
	require.ErrorContains(t, err, `"latest" is no version number`)
}

func TestClaimedVersion(t *testing.T) {
	t.Parallel()
	s := claudesim.Play(claudesim.Always(claudesim.Say("hi")))
	s.ClaimedVersion = "9.9.9"
	out := standIn(t, s, claudesim.VersionNew).launch(t, place{home: t.TempDir(), dir: t.TempDir()}, launch{raw: true, args: []string{"--version"}})
	require.Equal(t, "9.9.9 (Claude Code)\n", out.stdout)
}
