package guard_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

// explained is a policy that uses every feature.
const explained = `version: 1
branches: [main]
secrets: ["**/.env"]
protected: ["**/vms.yaml"]
tiers:
  1: {read: [".", "~", /etc], write: [$TMPDIR], methods: [GET], hosts: ["**"]}
  2: {read: [".", /etc], write: [".", $TMPDIR], keep: ["**/.git"], methods: [GET, HEAD], hosts: ["*.lan"]}
  3: {anything: true}
never:
  - {program: "rm|shred", flags: "-r -R", why: it destroys the host}
  - {program: docker, command: volume rm, why: it deletes persistent data}
  - {program: docker, command: restart, why: it ends the host}
  - {program: dd, args: [of=/dev/sda, of=/dev/sdb, of=/dev/sdc, of=/dev/sdd], why: it ends the host}
mcp: {mcp__tickets__read: 1, mcp__tickets__write: 2}
programs:
  cat: {tier: 1, args: "FILE*"}
  "tac, rev": {tier: 1, args: "FILE*", flags: "-a"}
  curl: {tier: 1, flags: "-s -m,--max-time=INT", args: URL}
  top: {tier: 1, flags: "-b -n=INT", needs: "-b"}
  timeout: {tier: 1, args: "DURATION COMMAND", style: posix}
  rm: {tier: 2, flags: "-f", args: "OUT+"}
  docker: &docker
    tier: 1
    commands:
      ps: {args: ""}
      logs: {args: NAME}
      restart: {tier: 2, args: "SERVICE+", action: restart}
      compose: {commands: {ps: {args: ""}, up: {tier: 2, in: work, flags: "-d", needs: "-d", args: "SERVICE*", action: redeployment}}}
      exec: {tier: 3}
  podman: *docker
  git: {tier: 2, in: repository, commands: {push: {args: "NAME BRANCH"}}}
  ansible-playbook: {tier: 3}
`

func explainedPolicy(t *testing.T) *guard.Policy {
	t.Helper()
	policy, err := guard.ParsePolicy([]byte(explained))
	require.NoError(t, err)
	return policy
}

const spelling = `
Each command is judged when it starts, by its real words. What is certain to be refused is refused before the call runs. So:
- scripts are fine: pipes, loops, functions, variables, §$(…)§, background jobs; not supported are descriptors above 2, coprocesses and §<>§
- a command that is refused ends with 126, and the script goes on: use §set -e§ where it must not
- put §--§ in front of names that come from another call: §docker ps -q | xargs docker inspect --§
- call programs by their names, not by paths; a script for a container (§docker exec NAME sh -c '…'§) is written out, without variables
- §curl§: one address a call, with its host and port written out; §-L§ follows to https only, §wget§ nowhere
- a refusal says why. Try another spelling only if it names one; else leave it, and say in your verdict what you could not do

Refused in any case:
- the supervisor's own files and ports, Temporal and its Web UI, §claudeops§, §claude§; environment and memory of processes
`

func TestBrief(t *testing.T) {
	t.Parallel()
	for tier, want := range map[int]string{
		1: `You may do this, and nothing else (§a b|c§ stands for §a b§ and §a c§; of options that are shown one must be given):
- look with: §cat, curl, docker|podman compose ps, docker|podman logs|ps, rev|tac, top -b§
- run one of these commands through: §timeout§
- read files, also with the tools Read, Grep and Glob, below: the working directory, §$HOME§, §/etc§
- write files, with the tools Edit and Write if you have them, below: §$TMPDIR§
- ask HTTP services by: GET, on any host
- use the tools: §mcp__tickets__read§
` + spelling + `- reading what may hold secrets: §.env§, §.ssh§, private keys, files named after passwords, tokens or secrets, §/etc/shadow§, Kubernetes Secrets
- changing §vms.yaml§
`,
		2: `You may do this, and nothing else (§a b|c§ stands for §a b§ and §a c§; of options that are shown one must be given):
- look with: §cat, curl, docker|podman compose ps, docker|podman logs|ps, rev|tac, top -b§
- restart services (each counts against the service's limit): §docker|podman restart§
- redeploy services (each counts against the service's limit): §docker|podman compose up -d§
- change: §git push§
- run one of these commands through: §timeout§
- read files, also with the tools Read, Grep and Glob, below: the working directory, §/etc§
- write files, with §rm§ and the tools Edit and Write if you have them, below: the working directory, §$TMPDIR§
- ask HTTP services by: GET, HEAD, on §*.lan§
- use the tools: §mcp__tickets__read§, §mcp__tickets__write§
` + spelling + `- reading what may hold secrets: §.env§, §.ssh§, private keys, files named after passwords, tokens or secrets, §/etc/shadow§, Kubernetes Secrets
- changing §vms.yaml§, §.git§
- pushing to §main§: push a branch of your own, and open a pull request
- any call where it destroys the host; it ends the host
`,
		3: `You may run any program, and read and write any file, but for this (§a b|c§ stands for §a b§ and §a c§):
- the supervisor's own files and ports, Temporal and its Web UI, §claudeops§, §claude§; environment and memory of processes
- changing §vms.yaml§
- pushing to §main§: push a branch of your own, and open a pull request
- §rm|shred -r|-R§: it destroys the host
- §docker volume rm§: it deletes persistent data
- §docker restart§, §dd of=/dev/sda|of=/dev/sdb|…§: it ends the host

A refusal says why. Try another spelling only if it names one; else leave it, and say in your verdict what you could not do.
`,
	} {
		require.Equal(t, strings.ReplaceAll(want, "§", "`"), explainedPolicy(t).Brief(tier))
	}
}

func TestBriefOfTheBuiltInPolicyIsShort(t *testing.T) {
	t.Parallel()
	for tier := 1; tier <= 3; tier++ {
		brief := policy(t).Brief(tier)
		require.LessOrEqual(t, strings.Count(brief, "\n"), 25, brief)
		require.Less(t, len(brief), 7_900, brief)
	}
}

// TestBriefAdvises checks that calls written as the brief advises are allowed.
func TestBriefAdvises(t *testing.T) {
	t.Parallel()
	g := guard.New(policy(t), guard.Host{})
	place, _ := stage(t)
	for command, want := range map[string]string{
		"docker ps -q | xargs docker inspect --":                    "at run",
		"for s in a b; do docker logs $s; done":                     "at run",
		"docker logs a --tail 5 && docker ps || true; df -h 2>&1":   "allowed",
		"curl -s http://a.lan:8096/":                                "allowed",
		"curl -sL http://a.lan:8096/":                               "allowed",
		"x=$(hostname); curl -s http://$x/":                         "at run",
		"/opt/docker ps":                                            "denied",
		"docker ps | awk '{print $1}'":                              "allowed",
		`docker ps | awk "{print $(hostname)}"`:                     "at run",
		"bash -c 'df -h'":                                           "allowed",
		"docker logs jellyfin --tail 5 | while read l; do :; done":  "allowed",
		"if docker ps -q; then df -h; fi":                           "allowed",
		"cmd=ps; docker $(echo ps)":                                 "at run",
		"systemctl restart jellyfin":                                "denied",
		"docker ps -a | grep jelly; systemctl is-active jellyfin":   "allowed",
		"kubectl -n shop get pods -o wide; kubectl get -n shop pod": "allowed",
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		require.NoError(t, err)
		got := g.Decide(guard.Call{Tier: 1, Tool: "Bash", Input: input, Place: place})
		require.Equal(t, want, string(got.Verdict()), "%s: %s", command, got.Reason)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	tier2 := explainedPolicy(t).Explain(2)
	up := tier2.Grants[slices.IndexFunc(tier2.Grants, func(g guard.Grant) bool { return g.Name() == "docker compose up" })]
	require.Equal(t, guard.Grant{
		Program: "docker", Command: "compose up", Options: []string{"-d"}, Needs: []string{"-d"}, Arguments: []string{"SERVICE*"},
		Action: "redeployment", In: "work", Tier: 2,
	}, up)
	require.True(t, up.Changes())
	names := func(e guard.Explanation) []string {
		var all []string
		for _, grant := range e.Grants {
			all = append(all, grant.Name())
		}
		return all
	}
	require.NotContains(t, names(tier2), "docker exec")
	require.NotContains(t, names(tier2), "ansible-playbook")
	require.NotContains(t, names(tier2), "docker", "it has subcommands, and does nothing without one")
	require.NotContains(t, names(explainedPolicy(t).Explain(1)), "docker restart")
	require.Len(t, tier2.Never, 4)
	require.Equal(t, []string{"*.lan"}, tier2.Hosts)

	tier3 := explainedPolicy(t).Explain(3)
	require.True(t, tier3.Anything)
	require.Empty(t, tier3.Grants)
	require.Empty(t, tier3.Secrets, "they hold for Tiers 1 and 2")
}
