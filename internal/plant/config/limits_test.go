package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func TestParseOverrides(t *testing.T) {
	t.Parallel()
	never, often := limit(t, "0/24h"), limit(t, "4/4h")
	for text, want := range map[string]Overrides{
		"jellyfin:restart=4/4h;postgres:redeployment=0/24h": {"jellyfin": {Restarts: &often}, "postgres": {Redeployments: &never}},
		" a b : restart = 4/4h ;;\n a b:redeployment=0/24h": {"a b": {Restarts: &often, Redeployments: &never}},
		"http://db:5432/?x=y:restart=none":                  {"http://db:5432/?x=y": {Restarts: &escalation.Limit{}}},
		" ; ":                                               {},
	} {
		got, err := parseOverrides(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseOverridesTellsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := parseOverrides("a:restart;:restart=1/1h;fine:restart=1/1h;b=1/1h;c:reboot=1/1h;d:other=1/1h;e:restart=-1/1h;f:restart=;fine:restart=2/1h")
	require.EqualError(t, err, `be items such as jellyfin:restart=4/4h, separated by semicolons; `+
		`"a:restart" has no limit after an equals sign; `+
		`":restart=1/1h" is about a service that cannot be: service 1 has a blank name; `+
		`"b=1/1h" has no colon between the service and restart or redeployment; `+
		`"c:reboot=1/1h" limits "reboot", which is neither restart nor redeployment; `+
		`"d:other=1/1h" limits other actions, which have no cooldown; `+
		`"e:restart=-1/1h" has a limit that is none: "-1/1h" is not a limit: the number must not be negative; `+
		`"f:restart=" has no limit after the equals sign; `+
		`"fine:restart=2/1h" comes twice for its service`)
}

// FuzzParseOverrides checks that the parser does not panic, and that formatting a result with String and parsing it
// again gives the same result.
func FuzzParseOverrides(f *testing.F) {
	for _, seed := range []string{"a:restart=4/4h;b:redeployment=none", "x=y:z:restart=0/1ns", ";;=", "a:restart=1/1h30m\nb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		overrides, err := parseOverrides(text)
		if err != nil {
			return
		}
		again, err := parseOverrides(overrides.String())
		require.NoError(t, err)
		require.Equal(t, overrides, again)
	})
}
