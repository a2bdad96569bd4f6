package guard_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/guard"
)

const extension = `version: 1
extends: default
programs:
  docker: {commands: {stop: {tier: 2, args: "SERVICE+"}}}
  backup-status: {tier: 1}
tiers:
  1: {read: [/srv/media], hosts: [nas.lan]}
never:
  - {program: docker, command: restart, args: [postgres], why: ask first}
without:
  programs: [podman ps, nl]
  tiers: {1: {hosts: ["**"]}}
`

func TestPolicyThatExtends(t *testing.T) {
	t.Parallel()
	policy, err := guard.ParsePolicyOver(deploy.Policy, []byte(extension))
	require.NoError(t, err)
	place := guard.Place{Work: []string{t.TempDir()}, Home: "/nowhere", Temp: "/nowhere/tmp", Path: []string{"/usr/bin", "/bin"}}
	allowed := func(tier int, script string) bool {
		input, err := json.Marshal(map[string]string{"command": script})
		require.NoError(t, err)
		return guard.New(policy, guard.Host{}).Decide(guard.Call{Tier: tier, Tool: "Bash", Input: input, Place: place}).Allowed
	}
	for script, want := range map[string][2]bool{
		"docker ps":                     {true, true},
		"docker stop jellyfin":          {false, true},
		"docker restart jellyfin":       {false, true},
		"docker restart postgres":       {false, false},
		"backup-status":                 {true, true},
		"podman ps":                     {false, false},
		"podman images":                 {true, true},
		"nl /etc/hostname":              {false, false},
		"cat /srv/media/x":              {true, false},
		"curl -fsS http://nas.lan/":     {true, true},
		"curl -fsS http://example.org/": {false, true},
		"rm -rf /":                      {false, false},
	} {
		require.Equal(t, want, [2]bool{allowed(1, script), allowed(2, script)}, script)
	}
	require.Equal(t, []string{
		"grants: backup-status (Tier 1), docker stop (Tier 2)", "Tier 1 reads: /srv/media", "Tier 1 asks: nas.lan",
		"denies to all tiers: docker restart", "does without: podman ps, nl", "Tier 1 does not ask: **",
	}, policy.Own())

	builtIn, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	require.Empty(t, policy.Lacks(builtIn))
	require.Nil(t, builtIn.Own())
	old, err := guard.ParsePolicy([]byte(small))
	require.NoError(t, err)
	require.Contains(t, old.Lacks(builtIn), "never: docker|podman system prune")
	require.Contains(t, old.Lacks(builtIn), "private: /proc/**/{environ,mem}")
}

func TestMistakesOfAnExtension(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nextends: default\n"
	for text, want := range map[string]string{
		"extends: default\n":                               "line 1: version: must be 1, and is 0",
		"version: 1\nextends: mine\n":                      `line 2: extends: must be default, and is "mine"`,
		head + "tiers:\n  1: {anything: true}\n":           "line 4: tiers: anything: cannot be added: copy deploy/policy.yaml, if you are sure",
		head + "without:\n  programs: [nl, nothing]\n":     "line 4: without: programs: nothing is not in the built-in policy",
		head + "without:\n  programs:\n    - docker fly\n": "line 5: without: programs: docker fly is not in the built-in policy",
		head + "without: {tiers: {2: {hosts: [nas]}}}\n":   "line 3: without: tiers: hosts: nas is not in the built-in policy",
		head + "programs:\n  x: {tier: 1, args: FIEL}\n":   `line 4: programs: x: args: there is no type "FIEL"`,
		head + "without: {never: [rm]}\n":                  `line 3: unknown field "never"`,
	} {
		_, err := guard.ParsePolicyOver(deploy.Policy, []byte(text))
		require.EqualError(t, err, want, text)
	}
	_, err := guard.ParsePolicyOver(deploy.Policy, []byte("version: 1\nwithout: {programs: [nl]}\ntiers: {1: {}, 2: {}, 3: {}}\n"))
	require.EqualError(t, err, "line 2: without: goes with extends: default")
}
