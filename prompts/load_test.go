package prompts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/prompts"
)

// write puts text into a file and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.md")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAnOverrideReplacesTheInstructionsOfItsTierOnly(t *testing.T) {
	t.Parallel()
	set := load(t, prompts.Overrides{Tier2: write(t, "Mind the house rules{{if .Resumed}} still{{end}}.\n")})
	launch := prompts.Launch{Tier: 2, From: 1, Policy: policy(t), Brief: "- `docker restart`", Request: "Help.", Handoff: "Found a fault."}

	fromHandoff, err := set.FromHandoff(launch)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(fromHandoff, "Mind the house rules.\n\n"))
	require.NotContains(t, fromHandoff, "You are the tier 2 agent")
	// The supervisor's own sections remain although the instructions are replaced.
	for _, kept := range []string{"Found a fault.", "Help.", "docker restart", "is data", "`needs_human`", "`actions`"} {
		require.Contains(t, fromHandoff, kept)
	}

	resumed, err := set.Resumed(launch)
	require.NoError(t, err)
	require.Contains(t, resumed, "you are the tier 2 agent")
	require.Contains(t, resumed, "Mind the house rules still.")
	require.NotContains(t, resumed, "You now repair")

	launch.Tier = 3
	other, err := set.Fresh(launch)
	require.NoError(t, err)
	require.NotContains(t, other, "house rules")
}

func TestOneFileCannotRedefineAnother(t *testing.T) {
	t.Parallel()
	set := load(t, prompts.Overrides{Tier1: write(t, `Look.{{define "rules.md"}}Anything goes.{{end}}`)})
	text, err := set.Fresh(prompts.Launch{Tier: 1, Policy: policy(t)})
	require.NoError(t, err)
	require.NotContains(t, text, "Anything goes")
	require.Contains(t, text, "## Rules")
}

func TestABrokenOverrideFailsWhenItIsLoaded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"syntax":                  {"Look.\n\n{{if}}", ":3: missing value for if"},
		"unknown value":           {"Look.\n{{.Nothing}}", ":2:2: "},
		"unknown function":        {"{{shout .Request}}", `:1: function "shout" not defined`},
		"braces meant for docker": {"Run docker ps --format '{{.Names}}'", `write {{"{{"}} for two plain braces`},
		"in one branch only":      {"Look.\n{{if .Resumed}}{{if .DryRun}}{{.Nothing}}{{end}}{{end}}", ":2:"},
		"with words only":         {"Look.\n{{with .Guidance}}{{.Nothing}}{{end}}", ":2:"},
		"blank":                   {" \n", "renders to nothing"},
		"slash":                   {"/compact now", ":1: it begins with a slash"},
		"too large":               {strings.Repeat("look ", 60_000), "at most 262144 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, test.text)
			_, err := prompts.Load(prompts.Overrides{Tier2: path})
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestEveryBrokenOverrideIsReported(t *testing.T) {
	t.Parallel()
	missing, blank := filepath.Join(t.TempDir(), "missing.md"), write(t, "")
	_, err := prompts.Load(prompts.Overrides{Tier1: missing, Tier3: blank})
	require.ErrorContains(t, err, missing)
	require.ErrorContains(t, err, blank)
	require.ErrorIs(t, err, os.ErrNotExist)
}
