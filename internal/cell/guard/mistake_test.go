package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

// small is a valid policy.
const small = `version: 1
tiers:
  1: {read: ["."]}
  2: {read: ["."]}
  3: {anything: true}
never:
  - {program: rm, why: it destroys}
programs:
  cat: {tier: 1, args: "FILE*"}
  docker: &docker
    - tier: 1
      commands:
        ps: {args: ""}
        logs: {args: NAME}
    - {tier: 1, flags: "-v", needs: "-v"}
  podman: *docker
  systemctl:
    tier: 1
    commands:
      "status, show": {args: "TEXT*"}
      restart:
        tier: 2
        args: "UNIT+"
        action: restart
`

func TestParsePolicyNamesTheLine(t *testing.T) {
	t.Parallel()
	_, err := guard.ParsePolicy([]byte(small))
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		from, to string
		line     int
		want     string
	}{
		"no YAML":                  {"version: 1", "version: [1", 2, "must be specified"},
		"a key that is none":       {"never:", "nevr:", 6, `unknown field "nevr"`},
		"a tier's key":             {"1: {read", "1: {raed", 3, `unknown field "raed"`},
		"a use's key":              {"  cat: {tier: 1, args", "  cat: {tier: 1, arg", 9, `unknown field "arg"`},
		"a key of a use in a list": {`flags: "-v", needs`, `flags: "-v", neds`, 15, `unknown field "neds"`},
		"a key of a subcommand":    {"logs: {args", "logs: {argz", 14, `unknown field "argz"`},
		"a text for a number":      {"cat: {tier: 1", "cat: {tier: one", 9, `a text "one" is there, where a number is needed`},
		"a key that is there twice": {
			"  podman: *docker", "  cat: {tier: 1}", 16, `mapping key "cat" already defined at [9:3]`,
		},
		"another version":             {"version: 1", "version: 2", 1, "version: must be 1, and is 2"},
		"a tier too few":              {"  3: {anything: true}\n", "", 2, "tiers: must have 3"},
		"a pattern of no file":        {`1: {read: ["."]}`, `1: {read: ["."], keep: ["a[b"]}`, 3, `tiers: keep: the pattern "a[b" cannot be read`},
		"a type that is none":         {"FILE*", "FIEL*", 9, `programs: cat: args: there is no type "FIEL"`},
		"the same in a list":          {`flags: "-v", needs`, `flags: "-v=NAMES", needs`, 15, `programs: docker: flags: -v=NAMES: there is no type "NAMES"`},
		"the same in a subcommand":    {"args: NAME", "args: NAMES", 14, `programs: docker: logs: args: there is no type "NAMES"`},
		"an action that is none":      {"action: restart", "action: reboot", 22, `programs: systemctl: restart: action must be restart or redeployment, and is "reboot"`},
		"one of several names":        {"TEXT*", "TXET*", 20, `programs: systemctl: status, show: args: there is no type "TXET"`},
		"a program that is not named": {"program: rm, ", "", 7, "never: a program and why are needed"},
		"a program twice":             {"podman:", `"podman, cat":`, 8, "programs: cat is there twice"},
		"nothing":                     {small, "", 1, "version: must be 1, and is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, small, tt.from)
			_, err := guard.ParsePolicy([]byte(strings.Replace(small, tt.from, tt.to, 1)))
			var mistake *guard.PolicyError
			require.ErrorAs(t, err, &mistake)
			require.Contains(t, mistake.Problem, tt.want)
			require.Equal(t, tt.line, mistake.Line, mistake.Problem)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// TestTheNearestDirectoryCounts checks that the innermost directory decides. By default the agent's directories lie
// within the supervisor's.
func TestTheNearestDirectoryCounts(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	place := guard.Place{
		Work: []string{state + "/work"}, Home: state + "/claude/home", Temp: state + "/work/.tmp",
		Own: []string{state, state + "/claude/home/archive"},
	}
	g := guard.New(policy(t), guard.Host{})
	for path, allowed := range map[string]bool{
		"/work/a": true, "/claude/home/.profile": true, "/work/.tmp/x": true, // in the agent's directories
		"/claudeops.db": false, "/claude/projects/x.jsonl": false, "/work-not": false, "/claude/home/archive/x": false,
	} {
		for tier := 1; tier <= 3; tier++ {
			got := g.Decide(guard.Call{Tier: tier, Tool: "Read", Input: []byte(`{"file_path":"` + state + path + `"}`), Place: place})
			require.Equal(t, allowed, got.Allowed, "%d %s %s", tier, path, got.Reason)
			if !allowed {
				require.Equal(t, "private", got.Rule)
			}
		}
	}
}
