package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/plant/config"
)

func TestCheckVariables(t *testing.T) {
	t.Parallel()
	environ := []string{
		"GH_TOKEN=t", "KUBECONFIG=/k", "AWS_REGION=r", "AWS_PROFILE=p", "FOO=1", "BAR=2", "CLAUDE_CODE_X=3", "SITE=4", "SECOND=5", "MY_TOKEN=6",
		"OTEL_EXPORTER_OTLP_HEADERS=x", "ANTHROPIC_API_KEY=sk-of-the-worker", "COPY=has sk-of-the-worker",
	}
	for named, c := range map[string]struct {
		sentence string
		passed   []string
	}{
		"":                                  {},
		"GH_TOKEN,KUBECONFIG,AWS_*,MISSING": {passed: []string{"AWS_PROFILE=p", "AWS_REGION=r", "GH_TOKEN=t", "KUBECONFIG=/k"}},
		"FOO,BAR=sh,GH_TOKEN": {
			sentence: "no program gets FOO: name one in CLAUDEOPS_PASS_ENV, as in FOO=PROGRAM, or write FOO=claude if all of an agent's " +
				"programs may read it",
			passed: []string{"BAR=2", "FOO=1", "GH_TOKEN=t"},
		},
		"MY_TOKEN": {
			sentence: "no program gets MY_TOKEN: name one in CLAUDEOPS_PASS_ENV, as in MY_TOKEN=PROGRAM",
			passed:   []string{"MY_TOKEN=6"},
		},
		"MY_TOKEN=claude": {
			sentence: "the CLI gets MY_TOKEN and its commands do not, because the name is that of a secret: name a program, as in MY_TOKEN=PROGRAM",
		},
		"BAR=deploy-of-mine": {
			sentence: "BAR is named for deploy-of-mine, which is in none of the policy's directories of programs (/usr/local/sbin, /usr/local/bin, " +
				"/usr/sbin, /usr/bin, /sbin, /bin, /snap/bin, /usr/games)",
			passed: []string{"BAR=2"},
		},
		"FOO=claude,CLAUDE_CODE_X,SITE=claude,SECOND=sh": {passed: []string{"SECOND=5"}},
		"OTEL_*,ANTHROPIC_API_KEY,COPY,COPY=sh":          {},
	} {
		cfg, err := config.Load([]string{"CLAUDEOPS_STATE_DIR=" + t.TempDir(), "CLAUDEOPS_AGENT_USER=none", "CLAUDEOPS_PASS_ENV=" + named})
		require.NoError(t, err)
		sentence, err := CheckVariables(cfg, environ)
		require.NoError(t, err)
		require.Equal(t, c.sentence, sentence, named)
		options := ClaudeOptions(cfg.Claude, environ)
		require.Equal(t, c.passed, claude.Passed(options), named)
		for name := range claude.Variables(options, nil) {
			require.NotContains(t, []string{"GH_TOKEN", "KUBECONFIG", "AWS_REGION", "BAR", "SECOND"}, name)
		}
	}
}
