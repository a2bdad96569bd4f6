package guard_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
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
		"docker ps":               {true, true},
		"docker stop jellyfin":    {false, true},
		"docker restart jellyfin": {false, true},
		"docker restart postgres": {false, false},
		"backup-status":           {true, true},
		"podman ps":               {false, false},
		"podman images":           {true, true},
		"nl /etc/hostname":        {false, false},
		"cat /srv/media/x":        {true, false},
	} {
		require.Equal(t, want, [2]bool{allowed(1, script), allowed(2, script)}, script)
	}
	require.Equal(t, strings.Split(strings.TrimSpace(extension), "\n"), policy.Own())

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

// TestComposeProjects uses projects outside of the working directory, and what lies beside them.
func TestComposeProjects(t *testing.T) {
	t.Parallel()
	srv, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, dir := range []string{"media/sub", "other", "scratch"} {
		require.NoError(t, os.MkdirAll(filepath.Join(srv, dir), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(srv, dir, "compose.yaml"), []byte("services: {web: {}, db: {}}\n"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(srv, "media/compose.yaml"), []byte("services: {web: {}, db: {}}\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(srv, "media/deep"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(srv, "media"), filepath.Join(srv, "link")))
	require.NoError(t, os.Symlink(filepath.Join(srv, "other/compose.yaml"), filepath.Join(srv, "media/compose.other.yaml")))
	policy, err := guard.ParsePolicyOver(deploy.Policy, []byte("version: 1\nextends: default\nprojects: ["+srv+"/media]\n"))
	require.NoError(t, err)
	require.Equal(t, "projects: ["+srv+"/media]", policy.Own()[2])
	place := guard.Place{Work: []string{srv + "/scratch"}, Home: "/nowhere", Temp: "/nowhere/tmp", Path: []string{"/usr/bin", "/bin"}}
	decide := func(tier int, script string) guard.Decision {
		input, err := json.Marshal(map[string]string{"command": strings.ReplaceAll(script, "SRV", srv)})
		require.NoError(t, err)
		return guard.New(policy, guard.Host{}).Decide(guard.Call{Tier: tier, Tool: "Bash", Input: input, Place: place})
	}
	for script, want := range map[string][2]bool{
		"docker compose -f SRV/media/compose.yaml ps":                           {true, true},
		"docker compose -f SRV/link/compose.yaml ps":                            {true, true},
		"docker compose -f SRV/media/sub/compose.yaml ps":                       {false, false},
		"docker compose -f SRV/media/compose.other.yaml ps":                     {false, false},
		"docker compose -f SRV/media/../other/compose.yaml ps":                  {false, false},
		"docker compose -f SRV/media/other.yaml ps":                             {false, false},
		"docker compose -f SRV/media/compose.yaml -f SRV/other/compose.yaml ps": {false, false},
		"cd SRV/media && docker compose -f=compose.yaml restart web":            {false, false}, // docker drops the =
		"cd SRV/scratch && docker compose -f=SRV/other/compose.yaml up -d web":  {false, false},
		"cd SRV/media && docker compose config -q":                              {true, true},
		"cd SRV/media && docker compose config":                                 {false, false},
		"cd SRV/media && docker compose restart":                                {false, true},
		"cd SRV/link && docker compose restart web":                             {false, true},
		"cd SRV/media && docker compose -f compose.yaml restart web":            {false, true},
		"docker compose -f SRV/media/compose.yaml restart web":                  {false, true},
		"docker compose -f SRV/media/compose.yaml restart":                      {false, false}, // which services?
		"cd SRV/other && docker compose -f SRV/media/compose.yaml restart web":  {false, false},
		"cd SRV/media && docker compose -p other restart web":                   {false, false},
		"cd SRV/media && docker compose -f SRV/other/compose.yaml up -d web":    {false, false},
		"cd SRV/media/sub && docker compose restart web":                        {false, false},
		"cd SRV && docker compose restart web":                                  {false, false},
		"cd SRV/media && docker compose down":                                   {false, false},
		"cd SRV/media && docker compose exec web id":                            {false, false},
		"ssh nas 'cd SRV/media && docker compose restart web'":                  {false, false},
		"cat SRV/media/compose.yaml":                                            {false, false},
		"echo 'services: {}' > SRV/media/compose.yaml":                          {false, false},
		"cd SRV/media && touch x":                                               {false, false},
	} {
		require.Equal(t, want, [2]bool{decide(1, script).Allowed, decide(2, script).Allowed}, script)
	}
	require.Equal(t, []guard.Action{{Kind: "restart", Service: "db"}, {Kind: "restart", Service: "web"}},
		decide(2, "cd SRV/media && docker compose restart").Actions)
	policy, err = guard.ParsePolicyOver(deploy.Policy, []byte("version: 1\nextends: default\nprojects: ["+srv+"/media -p blue, "+srv+"/media -p green]\n"))
	require.NoError(t, err)
	place.Work = append(place.Work, srv+"/media/deep")
	for script, want := range map[string][2]bool{
		"cd SRV/media && docker compose -p blue restart web":                         {false, true},
		"cd SRV/media && docker compose --project-name=green up -d web":              {false, true},
		"docker compose -p blue -f SRV/media/compose.yaml restart web":               {false, true},
		"cd SRV/media && docker compose restart web":                                 {false, false}, // a third project
		"cd SRV/media && docker compose -p red restart web":                          {false, false},
		"cd SRV/media && docker compose -p blue -p red restart web":                  {false, false},
		"cd SRV/media && docker compose -p blue -pred restart web":                   {false, false},
		"cd SRV/media && docker compose -p blue -p=red restart web":                  {false, false},
		"cd SRV/media && docker compose -pred restart web":                           {false, false},
		"docker compose -p blue -f SRV/media/sub/compose.yaml restart web":           {false, false},
		"docker compose -p blue restart web":                                         {false, false}, // of the working directory
		"docker compose restart web":                                                 {false, true},
		"cd SRV/media && docker compose -p blue logs --tail 20 web":                  {true, true},
		"cd SRV/media/deep && docker compose restart web":                            {false, false}, // of the directory above
		"cd SRV/media/deep && docker compose -p blue restart web":                    {false, true},
		"cd SRV/media/deep && docker compose -p red restart web":                     {false, false},
		"cd SRV/media && docker compose -p blue -f SRV/other/compose.yaml up -d web": {false, false},
		"d=SRV/media; cd \"$d\" && docker compose -p blue restart web":               {false, true},
		"cd SRV/media && docker compose -p blue --project-name red restart web":      {false, false},
	} {
		require.Equal(t, want, [2]bool{decide(1, script).Allowed, decide(2, script).Allowed}, script)
	}
	require.Equal(t, []guard.Action{{Kind: "restart", Service: "web"}}, decide(2, "docker restart green-web-1").Actions)
	for _, dir := range []string{"srv/media", "/", "/srv/../media", "~/media", "/srv/media/../x -p blue"} {
		_, err := guard.ParsePolicyOver(deploy.Policy, []byte("version: 1\nextends: default\nprojects: ["+dir+"]\n"))
		require.ErrorContains(t, err, "must be the absolute path of a directory", dir)
	}
}
