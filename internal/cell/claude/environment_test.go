package claude

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// always returns the variables that every invocation has, independent of the operator's environment.
func always() []string {
	return []string{
		"API_TIMEOUT_MS=300000",
		"CLAUDE_CODE_DISABLE_ATTACHMENTS=1",
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY=1",
		"CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_MAX_RETRIES=4",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_ERROR_REPORTING=1",
		"DISABLE_TELEMETRY=1",
		"GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=safe.bareRepository",
		"GIT_CONFIG_KEY_1=core.fsmonitor",
		"GIT_CONFIG_KEY_2=core.hooksPath",
		"GIT_CONFIG_VALUE_0=explicit",
		"GIT_CONFIG_VALUE_1=false",
		"GIT_CONFIG_VALUE_2=/dev/null",
		"GIT_NO_REPLACE_OBJECTS=1",
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		extra   map[string]string
		model   string
		want    []string
	}{
		"nothing": {},
		"a model that is dearer after a length stays below it": {
			model: "haiku", want: []string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=60"},
		},
		"another model": {model: "claude-haiku-4-5"},
		"what is on the list passes": {
			options: Options{Environ: []string{
				"PATH=/bin", "HOME=/home/ops", "LC_ALL=C", "https_proxy=http://proxy", "ANTHROPIC_API_KEY=k",
				"BASH_MAX_TIMEOUT_MS=1", "BASH_DEFAULT_TIMEOUT_MS=1", "API_TIMEOUT_MS=1",
				"DATABASE_URL=x", "SSH_AUTH_SOCK=y", "GITHUB_TOKEN=z", "CLAUDE_CODE_USE_GATEWAY=1",
			}},
			want: []string{"PATH=/bin", "HOME=/home/ops", "LC_ALL=C", "https_proxy=http://proxy", "ANTHROPIC_API_KEY=k"},
		},
		"the list can be extended by name and by prefix": {
			options: Options{Environ: []string{"KUBECONFIG=a", "FLEET_A=1", "FLEET_B=2", "FLEETING=3"}, PassEnv: []string{"KUBECONFIG", "FLEET_*"}},
			want:    []string{"KUBECONFIG=a", "FLEET_A=1", "FLEET_B=2"},
		},
		"the credentials for traces stay out, whatever the list says": {
			options: Options{
				Environ: []string{
					"OTEL_EXPORTER_OTLP_HEADERS=Authorization=k", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=Authorization=k", "OTEL_SERVICE_NAME=n",
				},
				PassEnv: []string{"OTEL_*", "OTEL_EXPORTER_OTLP_HEADERS"},
			},
			want: []string{"OTEL_SERVICE_NAME=n"},
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
			options: Options{ConfigDir: "/state/claude", Environ: []string{
				"CLAUDE_CONFIG_DIR=/home/ops/.claude", "HOME=/home/ops", "XDG_CONFIG_HOME=/home/ops/.config",
			}},
			want: []string{"CLAUDE_CONFIG_DIR=/state/claude", "HOME=/state/claude/home"},
		},
		"directories of the session": {
			options: Options{ConfigDir: "/state/claude", Environ: []string{"HOME=/home/ops"}},
			extra:   map[string]string{"CLAUDE_CONFIG_DIR": "/state/sessions/1/claude", "HOME": "/state/sessions/1/home"},
			want:    []string{"CLAUDE_CONFIG_DIR=/state/sessions/1/claude", "HOME=/state/sessions/1/home"},
		},
		"an existing login": {
			options: Options{Environ: []string{"CLAUDE_CONFIG_DIR=/home/ops/.claude", "HOME=/home/ops"}},
			want:    []string{"CLAUDE_CONFIG_DIR=/home/ops/.claude", "HOME=/home/ops"},
		},
		"the last of two counts": {
			options: Options{Environ: []string{"TZ=UTC", "TZ=CET"}},
			want:    []string{"TZ=CET"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli := &CLI{options: tc.options.withDefaults(), profile: newestProfile()}
			require.ElementsMatch(t, append(always(), tc.want...), cli.environment(Invocation{Env: tc.extra, Model: tc.model}))
		})
	}
}

func TestWhatAsksTheGuardWinsOverAllElse(t *testing.T) {
	t.Parallel()
	cli := &CLI{options: Options{Environ: []string{"SHELL=/bin/zsh"}}.withDefaults()}
	environ := cli.environment(Invocation{
		Env:   map[string]string{"SHELL": "/bin/dash", "CLAUDE_CODE_SHELL_PREFIX": "/bin/env"},
		Guard: &Guard{Env: map[string]string{"SHELL": "/bin/bash", "CLAUDE_CODE_SHELL_PREFIX": "/worker"}},
	})
	require.Contains(t, environ, "SHELL=/bin/bash")
	require.Contains(t, environ, "CLAUDE_CODE_SHELL_PREFIX=/worker")
}

func TestRetriesCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	cli := &CLI{options: Options{MaxRetries: -1}.withDefaults()}
	require.Contains(t, cli.environment(Invocation{}), "CLAUDE_CODE_MAX_RETRIES=0")
}

func TestTheCLIsTimeoutsComeBeforeTheIdleLimit(t *testing.T) {
	t.Parallel()
	for idle, want := range map[time.Duration]map[string]string{
		11 * time.Minute: {"API_TIMEOUT_MS": "300000", "BASH_MAX_TIMEOUT_MS": "600000"},
		4 * time.Minute:  {"API_TIMEOUT_MS": "180000", "BASH_MAX_TIMEOUT_MS": "180000"},
		2 * time.Minute:  {"API_TIMEOUT_MS": "60000", "BASH_MAX_TIMEOUT_MS": "60000", "BASH_DEFAULT_TIMEOUT_MS": "60000"},
		time.Nanosecond:  {"API_TIMEOUT_MS": "1", "BASH_MAX_TIMEOUT_MS": "1", "BASH_DEFAULT_TIMEOUT_MS": "1"},
	} {
		require.Equal(t, want, timeouts(idle), idle)
	}
}
