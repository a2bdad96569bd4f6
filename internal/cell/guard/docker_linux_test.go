//go:build containers

package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/systemtest/dockertest"
)

// callLimit bounds a call, as an agent's patience does.
const callLimit = 30 * time.Second

// TestCorpusOnDocker makes the docker and compose calls of the corpus that Tiers 1 and 2 may make on a real engine. A
// call of Tier 1 changes nothing that the engine knows. A call of Tier 2 changes no container but those of the services
// that it books, and none of their images, networks and volumes.
func TestCorpusOnDocker(t *testing.T) {
	e := dockertest.Start(t)
	e.AddCompose(t, "../../../bin/clients/docker-compose")
	at := newHomelab(t, e)
	done, changed := map[string]bool{}, 0
	for _, r := range rows(t, "testdata/wanted.jsonl") {
		key := fmt.Sprint(min(r.Tier, 2), r.Command)
		if r.Tier > 2 || !callsDocker.MatchString(r.Command) || done[key] {
			continue
		}
		done[key] = true
		call := at.here.Replace(r.Command)
		decision := at.decide(t, r.Tier, call)
		require.True(t, decision.Allowed, "tier %d: %q: %s", r.Tier, r.Command, decision.Reason)
		before := at.state(t)
		output := at.run(t, call)
		after := at.state(t)
		require.NotRegexp(t, failed, output, r.Command)
		if r.Tier == 1 {
			require.Equal(t, before, after, "tier 1: %q changes the engine", r.Command)
			continue
		}
		differences := before.differences(after)
		if len(differences) > 0 {
			changed++
		}
		if decision.AtRun != "" { // its services are known when it runs
			continue
		}
		for _, name := range differences {
			if !slices.Contains(booked(decision), name) {
				require.Equal(t, before[name], after[name], "tier 2: %q does not book %s: %s", r.Command, name, output)
			}
		}
	}
	t.Logf("%d calls, %d of them changed containers", len(done), changed)
	require.Positive(t, changed)
}

var (
	callsDocker = regexp.MustCompile(`(^|[;|&($\n] *|timeout \d+ |for .*in .*do |then |xargs |if )(/usr/bin/)?docker(-compose)? `)
	// failed matches what docker prints if it does not know a command or an option.
	failed = regexp.MustCompile(`unknown (shorthand )?flag|is not a docker command|unknown command`)
)

// booked returns the names of the services that a call acts on.
func booked(decision guard.Decision) (names []string) {
	for _, action := range decision.Actions {
		names = append(names, action.Service)
	}
	return names
}

// homelab is a machine with a compose project on an engine.
type homelab struct {
	engine *dockertest.Engine
	guard  *guard.Guard
	place  guard.Place
	here   *strings.Replacer
}

// services are those of the corpus's homelab, each with the services on which it depends.
var services = map[string]string{
	"jellyfin": "", "traefik": "", "postgres": "", "redis": "", "nginx": "", "web": "", "proxy": "", "lb": "",
	"sonarr": "jellyfin", "api": "postgres",
}

func newHomelab(t *testing.T, e *dockertest.Engine) *homelab {
	t.Helper()
	root := t.TempDir()
	at := &homelab{engine: e}
	for _, dir := range []string{"repo/config", "media", "session", "home"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o750))
	}
	var images []string
	compose := "services:\n"
	for _, name := range slices.Sorted(maps.Keys(services)) {
		images = append(images, name+"/"+name+":latest")
		compose += fmt.Sprintf("  %s:\n    image: %s/%s:latest\n    container_name: %s\n    init: true\n", name, name, name, name)
		if on := services[name]; on != "" {
			compose += fmt.Sprintf("    depends_on: {%s: {condition: service_started, restart: true}}\n", on)
		}
		if name == "api" {
			compose += "    healthcheck: {test: [CMD, 'true'], interval: 1s}\n"
		}
	}
	compose += "networks: {default: {name: web}}\nvolumes: {data: {name: postgres_data}}\n"
	compose = strings.Replace(compose, "    container_name: postgres\n", "    container_name: postgres\n    volumes: [data:/data]\n", 1)
	script := "#!/bin/sh\necho ok\n"
	e.Import(t, append(images, "nginx:latest"), map[string]string{
		"/usr/bin/pg_isready": script, "/usr/bin/redis-cli": script, "/usr/sbin/nginx": script, "/usr/bin/traefik": script,
		"/usr/bin/caddy": script, "/usr/bin/haproxy": script, "/etc/nginx/nginx.conf": "listen 80;\n", "/app/notes": "",
		"/config/log": "", "/usr/bin/run": "#!/bin/sh\necho ERROR x >&2\nexec sleep 100000\n",
	}, "/usr/bin/run")
	require.NoError(t, os.WriteFile(filepath.Join(root, "repo/compose.yaml"), []byte(compose), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "media/compose.yaml"), []byte("services: {m: {image: web/web:latest}}\n"), 0o600))
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	policy.Projects = append(policy.Projects, filepath.Join(root, "media"))
	at.guard = guard.New(policy, guard.Host{})
	at.place = guard.Place{
		Work: []string{filepath.Join(root, "repo")}, Home: filepath.Join(root, "home"), Temp: filepath.Join(root, "session"),
		Path: []string{"/usr/bin", "/bin"}, Confined: true,
	}
	at.here = strings.NewReplacer("/srv/repo", at.place.Work[0], "/opt/stacks/media", filepath.Join(root, "media"), "/tmp/session", at.place.Temp)
	require.Contains(t, at.run(t, "docker compose up -d --wait && echo up"), "\nup\n")
	return at
}

func (h *homelab) decide(t *testing.T, tier int, command string) guard.Decision {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	require.NoError(t, err)
	return h.guard.Decide(guard.Call{Tier: tier, Tool: "Bash", Input: input, Place: h.place})
}

// run runs a call in bash and returns what it prints.
func (h *homelab) run(t *testing.T, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-c", command)
	bash.Dir, bash.Env, bash.WaitDelay = h.place.Work[0], h.engine.Environ(), time.Second
	output, _ := bash.CombinedOutput() // many calls end with an error: what they look at is missing
	return string(output)
}

// engineState is what the engine knows, in lines: of each container, and of everything else.
type engineState map[string][]string

// volatile are the parts of a container's description that change by themselves, or by a look into it.
var volatile = regexp.MustCompile(`(?s)"(ExecIDs|Health)": (null|\[.*?\]|\{.*?\n            \}),?`)

func (h *homelab) state(t *testing.T) engineState {
	t.Helper()
	var others []string
	for _, list := range []string{"images -a --no-trunc --format {{.ID}}={{.Repository}}:{{.Tag}}", "volume ls -q", "network ls -q"} {
		others = append(others, strings.Fields(h.engine.Docker(t, strings.Fields(list)...))...)
	}
	slices.Sort(others)
	got := engineState{"everything else": others}
	for name := range strings.FieldsSeq(h.engine.Docker(t, "ps", "-a", "--format", "{{.Names}}")) {
		files := slices.Sorted(strings.Lines(h.engine.Docker(t, "diff", name) + "\n")) // its order is none
		got[name] = append(strings.Split(volatile.ReplaceAllString(h.engine.Docker(t, "inspect", name), ""), "\n"), files...)
	}
	return got
}

// differences returns the names of what differs.
func (before engineState) differences(after engineState) (names []string) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))))) {
		if !slices.Equal(before[name], after[name]) {
			names = append(names, name)
		}
	}
	return names
}
