package claude

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// always is what every invocation gets, whatever the environment.
func always() []string {
	return []string{
		"CLAUDE_CODE_DISABLE_ATTACHMENTS=1",
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY=1",
		"CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_MAX_RETRIES=4",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_ERROR_REPORTING=1",
		"DISABLE_TELEMETRY=1",
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		extra   map[string]string
		want    []string
	}{
		"nothing": {},
		"what is on the list passes": {
			options: Options{Environ: []string{
				"PATH=/bin", "HOME=/home/ops", "LC_ALL=C", "https_proxy=http://proxy", "ANTHROPIC_API_KEY=k",
				"DATABASE_URL=x", "SSH_AUTH_SOCK=y", "GITHUB_TOKEN=z", "CLAUDE_CODE_USE_GATEWAY=1",
			}},
			want: []string{"PATH=/bin", "HOME=/home/ops", "LC_ALL=C", "https_proxy=http://proxy", "ANTHROPIC_API_KEY=k"},
		},
		"the list can be extended by name and by prefix": {
			options: Options{Environ: []string{"KUBECONFIG=a", "FLEET_A=1", "FLEET_B=2", "FLEETING=3"}, PassEnv: []string{"KUBECONFIG", "FLEET_*"}},
			want:    []string{"KUBECONFIG=a", "FLEET_A=1", "FLEET_B=2"},
		},
		"a cloud's credentials stay out unless it serves the model": {
			options: Options{Environ: []string{"AWS_SECRET_ACCESS_KEY=s", "GOOGLE_APPLICATION_CREDENTIALS=g", "AZURE_CLIENT_SECRET=a"}},
		},
		"a cloud that serves the model": {
			options: Options{Environ: []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_SECRET_ACCESS_KEY=s", "GOOGLE_APPLICATION_CREDENTIALS=g"}},
			want:    []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_SECRET_ACCESS_KEY=s"},
		},
		"the invocation's own win over what passes, not over what is fixed": {
			options: Options{Environ: []string{"TZ=UTC"}},
			extra:   map[string]string{"TZ": "CET", "DISABLE_TELEMETRY": "0", "CLAUDEOPS_CHAIN_ID": "c"},
			want:    []string{"TZ=CET", "CLAUDEOPS_CHAIN_ID=c"},
		},
		"a directory of its own": {
			options: Options{ConfigDir: "/state/claude", Environ: []string{"CLAUDE_CONFIG_DIR=/home/ops/.claude"}},
			want:    []string{"CLAUDE_CONFIG_DIR=/state/claude"},
		},
		"an existing login": {
			options: Options{Environ: []string{"CLAUDE_CONFIG_DIR=/home/ops/.claude"}},
			want:    []string{"CLAUDE_CONFIG_DIR=/home/ops/.claude"},
		},
		"the last of two counts": {
			options: Options{Environ: []string{"TZ=UTC", "TZ=CET"}},
			want:    []string{"TZ=CET"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli := &CLI{options: tc.options.withDefaults()}
			require.ElementsMatch(t, append(always(), tc.want...), cli.environment(tc.extra))
		})
	}
}

func TestRetriesCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	cli := &CLI{options: Options{MaxRetries: -1}.withDefaults()}
	require.Contains(t, cli.environment(nil), "CLAUDE_CODE_MAX_RETRIES=0")
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	redact := redactor([]string{
		"ANTHROPIC_API_KEY=sk-secret-1", "GITHUB_TOKEN=ghp_secret", "HTTPS_PROXY=http://u:p@proxy", "PATH=/usr/bin", "SHORT_KEY=1",
	})
	require.Equal(t,
		"key [ANTHROPIC_API_KEY], [GITHUB_TOKEN] via [HTTPS_PROXY] in /usr/bin, 1 time",
		redact("key sk-secret-1, ghp_secret via http://u:p@proxy in /usr/bin, 1 time"))
}
