package claude

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	dirWith := func(name, text string) string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return dir
	}
	account, managed := dirWith(".credentials.json", `{"claudeAiOauth":{}}`), dirWith(".claude.json", `{"primaryApiKey":"sk-1"}`)
	for name, tc := range map[string]struct {
		options Options
		want    string // "" means not found
	}{
		"nothing":                 {options: Options{ConfigDir: t.TempDir()}},
		"no directory yet":        {options: Options{ConfigDir: filepath.Join(t.TempDir(), "none")}},
		"an empty key":            {options: Options{ConfigDir: t.TempDir(), Environ: []string{"ANTHROPIC_API_KEY="}}},
		"the cloud's without its": {options: Options{ConfigDir: t.TempDir(), Environ: []string{"AWS_ACCESS_KEY_ID=1"}}},
		"settings without a key":  {options: Options{ConfigDir: dirWith(".claude.json", `{"numStartups":1}`)}},
		"settings that are none":  {options: Options{ConfigDir: dirWith(".claude.json", `{`)}},
		"a key":                   {Options{ConfigDir: t.TempDir(), Environ: []string{"ANTHROPIC_API_KEY=sk-1"}}, "ANTHROPIC_API_KEY"},
		"a gateway's token":       {Options{ConfigDir: t.TempDir(), Environ: []string{"ANTHROPIC_AUTH_TOKEN=1"}}, "ANTHROPIC_AUTH_TOKEN"},
		"a subscription's token":  {Options{ConfigDir: t.TempDir(), Environ: []string{"CLAUDE_CODE_OAUTH_TOKEN=1"}}, "CLAUDE_CODE_OAUTH_TOKEN"},
		"Bedrock":                 {Options{ConfigDir: t.TempDir(), Environ: []string{"CLAUDE_CODE_USE_BEDROCK=1"}}, "CLAUDE_CODE_USE_BEDROCK"},
		"Vertex":                  {Options{ConfigDir: t.TempDir(), Environ: []string{"CLAUDE_CODE_USE_VERTEX=1"}}, "CLAUDE_CODE_USE_VERTEX"},
		"Foundry":                 {Options{ConfigDir: t.TempDir(), Environ: []string{"CLAUDE_CODE_USE_FOUNDRY=1"}}, "CLAUDE_CODE_USE_FOUNDRY"},
		"an account":              {Options{ConfigDir: account}, filepath.Join(account, ".credentials.json")},
		"a managed key":           {Options{ConfigDir: managed}, filepath.Join(managed, ".claude.json")},
		"the user's login":        {Options{}, "the login of this user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where, found := Credentials(tc.options)
			require.Equal(t, tc.want != "", found)
			if found {
				require.Equal(t, tc.want, where)
			}
		})
	}
}
