package guard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
)

// starts decides on the start of a program in the working directory.
func starts(t *testing.T, place guard.Place, tier int, command string) guard.Start {
	t.Helper()
	place.Dir = place.Work[0]
	return guard.New(policy(t), guard.Host{}).Start(guard.Act{Tier: tier, Place: place, Words: strings.Fields(command)})
}

// TestAProjectTakesNoServicesFromFilesOfAgents checks the files from which a compose file takes services: an agent
// could let one of them start a container that is root on the host.
func TestAProjectTakesNoServicesFromFilesOfAgents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files   map[string]string
		allowed bool
	}{
		"plain":                         {map[string]string{}, true},
		"an extended service of itself": {map[string]string{"compose.yaml": "services: {a: {extends: {service: b}}, b: {}}"}, true},
		"another compose file":          {map[string]string{"compose.yaml": "include: [sub/compose.yaml]", "sub/compose.yaml": "services: {a: {}}"}, true},
		"a file outside":                {map[string]string{"compose.yaml": "include: [/opt/stacks/base.yaml]"}, true},
		"a file of the directory":       {map[string]string{"compose.yaml": "include: [sub/stack.yaml]"}, false},
		"several":                       {map[string]string{"compose.yaml": "include: [{path: [compose.b.yaml, stack.yaml]}]"}, false},
		"its variables":                 {map[string]string{"compose.yaml": "include: [{path: compose.b.yaml, env_file: values}]"}, false},
		"variables of a service":        {map[string]string{"compose.yaml": "services: {a: {env_file: values}, b: {}}"}, false},
		"optional ones":                 {map[string]string{"compose.yaml": "services: {a: {env_file: [{path: values, required: false}]}}"}, false},
		"variables that people write":   {map[string]string{"compose.yaml": "services: {a: {env_file: [.env, web.env, '${STAGE}.env', /etc/web]}}"}, true},
		"included with its variables":   {map[string]string{"compose.yaml": "include: [{path: compose.b.yaml, env_file: b.env}]", "b.env": "A=1\n"}, true},
		"an extended service":           {map[string]string{"compose.yaml": "services: {a: {extends: {file: base.yaml, service: b}}}"}, false},
		"of the override":               {map[string]string{"compose.override.yaml": "include: [stack.yaml]"}, false},
		"of an older override":          {map[string]string{"docker-compose.override.yml": "include: [stack.yaml]"}, false},
		"in a file that is included":    {map[string]string{"compose.yaml": "include: [sub/compose.yaml]", "sub/compose.yaml": "include: [stack.yaml]"}, false},
		"from a registry":               {map[string]string{"compose.yaml": "include: ['oci://evil.example.net/x']"}, false},
		"from a repository":             {map[string]string{"compose.yaml": "include: ['https://evil.example.net/x.git']"}, false},
		"from a variable":               {map[string]string{"compose.yaml": "include: ['${WHERE}/compose.yaml']"}, false},
		"with a tag":                    {map[string]string{"compose.override.yaml": "services: {a: {ports: !reset []}}"}, true},
		"without a form":                {map[string]string{"compose.yaml": "services: [a]"}, false},
		"a document with its beginning": {map[string]string{"compose.yaml": "# media\n\n---\nservices: {a: {}}\n"}, true},
		"a second document":             {map[string]string{"compose.yaml": "services: {a: {}}\n---\nservices: {a: {env_file: values}}\n"}, false},
		"a document behind an empty":    {map[string]string{"compose.yaml": "---\n---\ninclude: [stack.yaml]\n"}, false},
		"a document behind a comment":   {map[string]string{"compose.yaml": "# x\r---\n---\ninclude: [stack.yaml]\n"}, false},
		"a document after an end":       {map[string]string{"compose.yaml": "services: {a: {}}\n...\n---\ninclude: [stack.yaml]\n"}, false},
		"in UTF-16":                     {map[string]string{"compose.yaml": "\xff\xfea\x00:\x00 \x00b\x00"}, false},
		"a file that includes itself":   {map[string]string{"compose.yaml": "include: [compose.yaml]"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place, _ := stage(t)
			for file, content := range tt.files {
				require.NoError(t, os.WriteFile(filepath.Join(place.Work[0], file), []byte(content), 0o600))
			}
			for _, command := range []string{"docker compose up -d a", "docker compose restart a"} {
				got := starts(t, place, 2, command)
				require.Equal(t, tt.allowed, got.Allowed, got.Reason)
				below := place
				below.Work = []string{filepath.Join(place.Work[0], "sub")}
				if _, own := tt.files["sub/compose.yaml"]; !own {
					below.Work = append(below.Work, place.Work[0])
					require.Equal(t, tt.allowed, starts(t, below, 2, command).Allowed, "below")
				}
			}
		})
	}
}

// TestOneContainerCountsOnce checks that the names of a container count as one service in the ledger.
func TestOneContainerCountsOnce(t *testing.T) {
	t.Parallel()
	place, _ := stage(t)
	require.NoError(t, os.WriteFile(filepath.Join(place.Work[0], "compose.yaml"),
		[]byte("name: media\nservices: {jellyfin: {container_name: tv}, db: {}, sonarr: {}}\n"), 0o600))
	for command, service := range map[string]string{
		"docker restart tv":                     "jellyfin",
		"docker restart media-jellyfin-1":       "jellyfin",
		"podman restart media_sonarr_2":         "sonarr",
		"docker container restart media-db-1":   "db",
		"docker restart other-db-1":             "other-db-1",
		"docker restart media-db-1-old":         "media-db-1-old",
		"docker restart db":                     "db",
		"docker compose restart jellyfin":       "jellyfin",
		"docker-compose restart db":             "db",
		"systemctl restart jellyfin.service":    "jellyfin",
		"service jellyfin restart":              "jellyfin",
		"kubectl rollout restart deployment/db": "db",
	} {
		got := starts(t, place, 2, command)
		require.True(t, got.Allowed, "%s: %s", command, got.Reason)
		require.Equal(t, []guard.Action{{Kind: "restart", Service: service}}, got.Actions, command)
	}
	for _, command := range []string{"docker restart compose 3f2a1", "podman start compose 3f2a1"} {
		require.False(t, starts(t, place, 2, command).Allowed, command)
	}
	place.Services = []string{"ops-worker"}
	for _, command := range []string{"systemctl restart ops-worker.service", "service ops-worker restart", "docker restart ops-worker"} {
		require.False(t, starts(t, place, 2, command).Allowed, command)
	}
}

// TestDependentsCount checks that a restart counts for each service that docker compose restarts with another.
func TestDependentsCount(t *testing.T) {
	t.Parallel()
	place, _ := stage(t)
	for name, text := range map[string]string{
		"compose.yaml": "services: {db: {}, api: {depends_on: {db: {condition: service_started, restart: true}}}, " +
			"job: {depends_on: {db: {restart: false}, api: {}}}, old: {depends_on: [db]}}\n",
		"compose.override.yaml": "services: {web: {depends_on: {api: {restart: '${RESTART}'}}}, db: {depends_on: {web: {restart: true}}}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(place.Work[0], name), []byte(text), 0o600))
	}
	for command, services := range map[string][]string{
		"docker compose restart db":           {"db", "api", "web"},
		"docker-compose up -d db":             {"db", "api", "web"},
		"docker compose restart api job":      {"api", "job", "web", "db"},
		"docker compose restart --no-deps db": {"db"},
		"docker compose restart old":          {"old"},
		"docker restart db":                   {"db"},
	} {
		got := starts(t, place, 2, command)
		require.True(t, got.Allowed, "%s: %s", command, got.Reason)
		booked := make([]string, len(got.Actions))
		for i, action := range got.Actions {
			booked[i] = action.Service
		}
		require.Equal(t, services, booked, command)
	}
}

// TestProgramsInContainersStartThemselves checks that no program in a container is started by this executable, which is
// not there.
func TestProgramsInContainersStartThemselves(t *testing.T) {
	t.Parallel()
	place, _ := stage(t)
	for _, tier := range []int{1, 3} {
		for _, command := range []string{
			"docker exec web timeout 5 ls /", "docker exec web nice ls /", "docker exec web stdbuf -o L nohup ls /", "docker exec web env LANG=C ls /",
		} {
			got := starts(t, place, tier, command)
			require.True(t, got.Allowed, "%s: %s", command, got.Reason)
			require.Empty(t, got.Inner, command)
		}
	}
	got := starts(t, place, 1, "timeout 5 docker exec web timeout 5 ls /")
	require.Equal(t, []int{2}, got.Inner, "outside it does")
}

// TestServicesOfADirectoryNamedAsTheSupervisor checks that only services of the supervisor are its own: worktrees are
// in its directory.
func TestServicesOfADirectoryNamedAsTheSupervisor(t *testing.T) {
	t.Parallel()
	place, _ := stage(t)
	place.Work = []string{filepath.Join(place.Work[0], "claudeops")}
	require.NoError(t, os.Mkdir(place.Work[0], 0o700))
	for _, tier := range []int{2, 3} {
		for _, command := range []string{"docker restart web", "systemctl restart nginx", "service nginx restart"} {
			got := starts(t, place, tier, command)
			require.True(t, got.Allowed, "%d: %s: %s", tier, command, got.Reason)
		}
		for _, command := range []string{"docker restart claudeops-worker-1", "systemctl restart claudeops-worker"} {
			require.False(t, starts(t, place, tier, command).Allowed, command)
		}
	}
}

// TestContainersDoNotAskTheHost checks that a container asks no port 80 or 443 of the supervisor at an address that can
// be this host.
func TestContainersDoNotAskTheHost(t *testing.T) {
	t.Parallel()
	place, _ := stage(t)
	place.Doors = []guard.Door{{Host: "ops.lan", Port: 443}}
	for command, allowed := range map[string]bool{
		"curl https://172.17.0.1/": false, "curl https://[fd00::1]/": false, "curl https://host.docker.internal/x": false, "nc -z 172.17.0.1 443": false,
		"curl https://ops.lan/": false, "curl https://localhost/": true, "curl https://127.0.0.1/": true, "curl https://media.lan/": true,
		"curl http://172.17.0.1/": true, "curl https://172.17.0.1:8443/": true,
	} {
		got := starts(t, place, 1, "docker exec web "+command)
		require.Equal(t, allowed, got.Allowed, "%s: %s", command, got.Reason)
	}
	require.True(t, starts(t, place, 1, "curl https://172.17.0.1/").Allowed, "here the kernel judges the address")
}
