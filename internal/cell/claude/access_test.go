package claude

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindAccess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		environ []string
		want    Access // no Variables: FindAccess must return false
	}{
		"nothing": {environ: []string{"ANTHROPIC_BASE_URL=https://gateway", "ANTHROPIC_API_KEY="}},
		"a key":   {[]string{"ANTHROPIC_API_KEY=k"}, Access{[]string{"ANTHROPIC_API_KEY"}, firstPartyURL, http.Header{"X-Api-Key": {"k"}}}},
		"a token": {[]string{"ANTHROPIC_AUTH_TOKEN=t"}, Access{[]string{"ANTHROPIC_AUTH_TOKEN"}, firstPartyURL, http.Header{"Authorization": {"Bearer t"}}}},
		"an account's token": {
			[]string{"CLAUDE_CODE_OAUTH_TOKEN=o"},
			Access{[]string{"CLAUDE_CODE_OAUTH_TOKEN"}, firstPartyURL, http.Header{"Authorization": {"Bearer o"}}},
		},
		"a key and a token": {
			[]string{"ANTHROPIC_AUTH_TOKEN=t", "ANTHROPIC_API_KEY=k"},
			Access{[]string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, firstPartyURL, http.Header{"X-Api-Key": {"k"}, "Authorization": {"Bearer t"}}},
		},
		"a key goes before an account's token": {
			[]string{"CLAUDE_CODE_OAUTH_TOKEN=o", "ANTHROPIC_API_KEY=k"},
			Access{[]string{"ANTHROPIC_API_KEY"}, firstPartyURL, http.Header{"X-Api-Key": {"k"}}},
		},
		"a gateway with headers of its own": {
			[]string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://gateway:4000/x", "ANTHROPIC_CUSTOM_HEADERS=x-team: a:b\n X-Site : two \nbroken\n"},
			Access{[]string{"ANTHROPIC_API_KEY"}, "http://gateway:4000/x", http.Header{"X-Api-Key": {"k"}, "X-Team": {"a:b"}, "X-Site": {"two"}}},
		},
		"a cloud":              {environ: []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_USE_BEDROCK=1"}},
		"a cloud, spelled out": {environ: []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_USE_VERTEX=True"}},
		"a cloud, switched off": {
			[]string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_USE_FOUNDRY=0"},
			Access{[]string{"ANTHROPIC_API_KEY"}, firstPartyURL, http.Header{"X-Api-Key": {"k"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := FindAccess(Options{Environ: tc.environ})
			require.Equal(t, len(tc.want.Variables) > 0, found)
			if found {
				require.Equal(t, tc.want, got)
			}
		})
	}
}

func TestAnEndpointReplacesTheCredentials(t *testing.T) {
	t.Parallel()
	const secret = "sk-real-4f0c2b7a9d"
	endpoint := &Endpoint{URL: "http://127.0.0.1:4711", Key: "of-the-session"}
	const firstParty = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL=1"
	for name, tc := range map[string]struct {
		options Options
		want    []string
	}{
		"a key": {
			Options{Environ: []string{"PATH=/bin", "ANTHROPIC_API_KEY=" + secret, "ANTHROPIC_DEFAULT_HAIKU_MODEL=h"}},
			[]string{"PATH=/bin", "ANTHROPIC_API_KEY=of-the-session", "ANTHROPIC_DEFAULT_HAIKU_MODEL=h", firstParty},
		},
		"a token": {
			Options{Environ: []string{"ANTHROPIC_AUTH_TOKEN=" + secret}},
			[]string{"ANTHROPIC_AUTH_TOKEN=of-the-session", firstParty},
		},
		"an account's token beside a key": {
			Options{Environ: []string{"CLAUDE_CODE_OAUTH_TOKEN=" + secret, "ANTHROPIC_API_KEY=k"}},
			[]string{"ANTHROPIC_API_KEY=of-the-session", firstParty},
		},
		"the API's own address, spelled out": {
			Options{Environ: []string{"ANTHROPIC_API_KEY=" + secret, "ANTHROPIC_BASE_URL=https://api.anthropic.com/"}},
			[]string{"ANTHROPIC_API_KEY=of-the-session", firstParty},
		},
		"a gateway, a client certificate, headers": {
			Options{Environ: []string{
				"ANTHROPIC_API_KEY=" + secret, "ANTHROPIC_BASE_URL=https://gateway", "ANTHROPIC_CUSTOM_HEADERS=X-Key: " + secret,
				"CLAUDE_CODE_CLIENT_CERT=/c", "CLAUDE_CODE_CLIENT_KEY=/k", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE=p",
			}},
			[]string{"ANTHROPIC_API_KEY=of-the-session"},
		},
		"passed on by name, also under another": {
			Options{
				Environ: []string{"ANTHROPIC_API_KEY=" + secret, "COPY=x:" + secret, "OTHER=1"},
				PassEnv: []string{"ANTHROPIC_*", "COPY", "OTHER"},
			},
			[]string{"ANTHROPIC_API_KEY=of-the-session", "OTHER=1", firstParty},
		},
		"behind a proxy": {
			Options{Environ: []string{"ANTHROPIC_API_KEY=" + secret, "http_proxy=http://proxy", "NO_PROXY=internal"}},
			[]string{"ANTHROPIC_API_KEY=of-the-session", "http_proxy=http://proxy", "NO_PROXY=internal,127.0.0.1", "no_proxy=127.0.0.1", firstParty},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli := &CLI{options: tc.options.withDefaults()}
			got := cli.environment(Invocation{API: endpoint})
			require.ElementsMatch(t, append(append(always(), tc.want...), "ANTHROPIC_BASE_URL=http://127.0.0.1:4711"), got)
			require.NotContains(t, strings.Join(got, "\n"), secret)
		})
	}
}

func TestPermits(t *testing.T) {
	t.Parallel()
	environ := []string{"ANTHROPIC_DEFAULT_SONNET_MODEL=team/medium[1m]", "ANTHROPIC_SMALL_FAST_MODEL=team/small"}
	cli := &CLI{options: Options{Environ: environ}}
	for model, tc := range map[string]struct{ permitted, refused []string }{
		"haiku": {
			[]string{"claude-haiku-4-5-20251001", "claude-haiku-5-5", "claude-3-5-haiku-20241022", "team/small"},
			[]string{"claude-sonnet-5", "claude-opus-5-5", "team/medium", "haiku-opus", "claude-haiku-opus-1", "gpt-haiku", "", " ", "CLAUDE-OPUS-5"},
		},
		"sonnet":                   {[]string{"claude-sonnet-5-5", "claude-haiku-5-5", "team/medium"}, []string{"claude-opus-5-5", "claude-fable-5"}},
		"sonnet[1m]":               {[]string{"claude-sonnet-5-5"}, []string{"claude-opus-5-5"}},
		"opus":                     {[]string{"claude-opus-4-8", "claude-haiku-5-5"}, []string{"claude-sonnet-5-5", "team/medium"}},
		"opusplan":                 {[]string{"claude-opus-4-8", "claude-sonnet-5"}, []string{"claude-fable-5"}},
		"best":                     {[]string{"claude-opus-5-5", "claude-fable-5-2"}, []string{"claude-sonnet-5"}},
		"claude-opus-4-1-20250805": {[]string{"claude-opus-4-1-20250805", "claude-opus-5-5"}, []string{"claude-sonnet-5"}},
		"our-model":                {[]string{"our-model", "claude-haiku-5-5"}, []string{"claude-sonnet-5", "our-model-2"}},
	} {
		for _, asked := range tc.permitted {
			require.True(t, cli.Permits(model, asked), "%s asks for %q", model, asked)
		}
		for _, asked := range tc.refused {
			require.False(t, cli.Permits(model, asked), "%s asks for %q", model, asked)
		}
	}
}

// TestPriceIsTheEstimate checks that CLI.Price returns the same price for a call as the estimate from the stream.
func TestPriceIsTheEstimate(t *testing.T) {
	t.Parallel()
	cli := cliOf("2.1.332")
	call := CallUsage{Tokens: Tokens{Input: 1000, Output: 200, CacheRead: 300, CacheCreation: 400}, OneHour: 100, WebSearches: 3}
	var used usage
	require.True(t, decode([]byte(`{"input_tokens":1000,"output_tokens":200,"cache_read_input_tokens":300,"cache_creation_input_tokens":400,`+
		`"cache_creation":{"ephemeral_1h_input_tokens":100},"server_tool_use":{"web_search_requests":3}}`), &used))
	require.InDelta(t, cli.profile.prices.estimate("claude-sonnet-5-5", used), cli.Price("claude-sonnet-5-5", call), 1e-12)
	// Prices per million tokens: input $2, output $10, cache reads $0.10. Cache writes cost 1.25 times the input price,
	// or twice the input price if the cache is kept for an hour. A search costs one cent.
	want := (2*(1000+1.25*300+2*100)+10*200+0.1*300)/1e6 + 0.03
	require.InDelta(t, want, cli.Price("claude-sonnet-5-5", call), 1e-12)
}
