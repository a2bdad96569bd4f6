package discover_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/discover"
)

var update = flag.Bool("update", false, "write the golden files")

// media is the output of `docker ps` and `docker compose ls` on a machine with a project and hostile names.
const (
	media = `{"Names":"media-web-1","Image":"nginx","State":"running","Labels":"a=b,com.docker.compose.project=media,com.docker.compose.service=web"}
{"Names":"alone","Image":"busybox","State":"exited","Labels":""}
not JSON
{"Names":"evil\nname","Image":"x","State":"running"}
{"Names":"odd","Image":"a\u001b[2Jb","State":"running","Labels":"com.docker.compose.project=x\u0007,com.docker.compose.service=y"}
`
	mediaProjects = `[{"Name":"media","Status":"running(2)","ConfigFiles":"/srv/media/compose.yaml,/srv/media/compose.override.yaml"},
{"Name":"odd","ConfigFiles":"relative.yaml"},{"Name":"a\u001b","ConfigFiles":"/srv/a/compose.yaml"},{"Name":"root","ConfigFiles":"/compose.yaml"}]`
	podman = `{"Names":["web"],"Image":"nginx","State":"running","Labels":{"com.docker.compose.project":"p","com.docker.compose.service":"s"}}`
)

// sockets is a part of /proc/net/tcp: 127.0.0.1:5432, 0.0.0.0:443, a connection, and 0.0.0.0:5432.
const sockets = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0 100 0 0 10 0
   1: 00000000:01BB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0 100 0 0 10 0
   2: 00000000:0050 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0 100 0 0 10 0
   3: cut off
`

const sockets6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:0277 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 103 1 0 100 0 0 10 0
   1: 00000000000000000000000000000000:01BB 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 104 1 0 100 0 0 10 0
`

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o600} }

func link(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: 0o777 | fs.ModeSymlink}
}

// programs answers calls of programs. The key is the program with its arguments, as far as they are told apart.
func programs(answers map[string]string) func(context.Context, string, ...string) (string, error) {
	return func(_ context.Context, name string, args ...string) (string, error) {
		words := strings.Join(append([]string{name}, args...), " ")
		installed := false
		for call, answer := range answers {
			installed = installed || strings.HasPrefix(call, name+" ")
			if strings.HasPrefix(words, call) {
				if problem, failed := strings.CutPrefix(answer, "error: "); failed {
					return "", errors.New(problem)
				}
				return answer, nil
			}
		}
		if installed {
			return "", errors.New(name + ": unknown command")
		}
		return "", discover.ErrMissing
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	full := fstest.MapFS{
		"etc/os-release":                            file("NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
		"etc/systemd/system/backup.service":         file(""),
		"etc/systemd/system/claudeops-up.service":   file(""),
		"etc/systemd/system/of-the-system.service":  link("/lib/systemd/system/of-the-system.service"),
		"etc/systemd/system/template@.service":      file(""),
		"etc/systemd/system/backup.timer":           file(""),
		"etc/systemd/system/evil\x1b[2J.service":    file(""),
		"etc/systemd/system/caddy.service.d/x.conf": file(""),
		"run/systemd/system/.keep":                  file(""),
		"proc/net/tcp":                              file(sockets),
		"proc/net/tcp6":                             file(sockets6),
		"proc/7/comm":                               file("postgres\n"),
		"proc/7/fd/3":                               link("socket:[100]"),
		"proc/8/comm":                               file("ev\x1bil\n"),
		"proc/8/fd/3":                               link("socket:[101]"),
		"proc/8/fd/4":                               link("/dev/null"),
		"home/ada/.kube/config":                     file("contexts: [{name: prod}, {name: staging}, {name: \"a\\nb\"}]\n"),
		"home/ada/.ssh/config":                      file("Host nas web1\n  HostName x\nhost = \"db\"\nHost *.lan !x\nHost $(id)\nMatch all\n"),
		"home/ada/infra/.git/config":                file(""),
		"home/ada/infra/shop/docker-compose.yml":    file(""),
		"home/ada/.cache/x/compose.yaml":            file(""),
		"home/ada/a/b/c/d/compose.yaml":             file(""),
		"opt/tool/compose.yml":                      file(""),
		"home/ada/claudeops/go.mod":                 file("module github.com/claudeops/claudeops\n"),
		"home/ada/claudeops/compose.yaml":           file(""),
		"home/ada/claudeops/deploy/compose.yaml":    file(""),
		"opt/tool/node_modules/x/compose.yml":       file(""),
		"srv/media/compose.yaml":                    file(""),
	}
	user := map[string]string{
		"docker ps": media, "docker compose ls": mediaProjects,
		"systemctl list-units --failed": "nginx.service loaded failed dead A web server\n",
		"sudo -n -l":                    "User ada may run the following commands on host:\n    (ALL : ALL) NOPASSWD: ALL\n",
	}
	for name, host := range map[string]discover.Host{
		"bare":     {Files: fstest.MapFS{}, UID: 1000, Run: programs(nil)},
		"full":     {Files: full, UID: 1000, Hostname: "nas", Environ: []string{"HOME=/home/ada"}, Run: programs(user)},
		"root":     {Files: full, Hostname: "nas", Environ: []string{"HOME=/root", "KUBECONFIG=/home/ada/.kube/config:/missing"}, Run: programs(user)},
		"podman":   {Files: fstest.MapFS{}, UID: 1000, Run: programs(map[string]string{"podman ps": podman})},
		"password": {Files: fstest.MapFS{}, UID: 1000, Run: programs(map[string]string{"sudo -n -l": "    (ALL) ALL\n"})},
		"broken": {
			Files: fstest.MapFS{"home/ada/.kube/config": file("contexts: {{{"), "run/systemd/system/.keep": file("")},
			UID:   1000, Environ: []string{"HOME=/home/ada"},
			Run: programs(map[string]string{
				"docker ps": "error: docker: permission\tdenied\x1b", "systemctl list-units": "error: systemctl: no bus", "sudo -n -l": "error: a password is required",
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, discover.Look(t.Context(), host))
		})
	}
}

// golden compares what was found with a golden file.
func golden(t *testing.T, name string, found discover.Machine) {
	t.Helper()
	text, err := yaml.Marshal(found)
	require.NoError(t, err)
	path := filepath.Join("testdata", name+".yaml")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o700))
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

// TestLookAtMuch looks at a machine with more of everything than a screen shows.
func TestLookAtMuch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() // a map of so many files would be too slow for the time limit
	var listed strings.Builder
	for i := range 3_000 {
		project := filepath.Join(dir, "opt", fmt.Sprintf("p%04d", i))
		require.NoError(t, os.MkdirAll(project, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(project, "compose.yaml"), nil, 0o600))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "srv", fmt.Sprintf("d%04d", i)), 0o700))
		fmt.Fprintf(&listed, "{\"Names\":\"c%d\",\"State\":\"running\"}\n", i)
	}
	found := discover.Look(t.Context(), discover.Host{Files: os.DirFS(dir), UID: 1000, Run: programs(map[string]string{"docker ps": listed.String()})})
	require.Len(t, found.Containers, 100)
	require.Len(t, found.Projects, 100)
	require.Equal(t, []string{"Compose files: there are too many directories to look at all"}, found.Problems)
}

// TestLookDoesNotHang looks with a docker that never ends. The other finders find what is there.
func TestLookDoesNotHang(t *testing.T) {
	t.Parallel()
	run := func(ctx context.Context, name string, _ ...string) (string, error) {
		if name == "docker" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "", discover.ErrMissing
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	found := discover.Look(ctx, discover.Host{Files: fstest.MapFS{"etc/systemd/system/backup.service": file("")}, UID: 1000, Run: run})
	require.Equal(t, []string{"backup"}, found.OwnUnits)
	require.Equal(t, []string{"containers: the look took too long, and found nothing or a part"}, found.Problems)
}

// TestPrograms runs real programs from PATH: one that hangs, one that fails, one that prints much.
func TestPrograms(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for name, script := range map[string]string{
		"hangs":  "#!/bin/sh\ntrap '' INT\nsleep 600 & wait\nsleep 600\n",
		"fails":  "#!/bin/sh\necho \"no\tdaemon\" >&2\nexit 3\n",
		"prints": "#!/bin/sh\nhead -c 3000000 /dev/zero\n",
		"says":   "#!/bin/sh\necho \"$LC_ALL $1\"\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700))
	}
	host := discover.ThisHost([]string{"PATH=relative:" + bin + ":/usr/bin:/bin"})
	said, err := host.Run(t.Context(), "says", "hello")
	require.NoError(t, err)
	require.Equal(t, "C hello\n", said)
	_, err = host.Run(t.Context(), "missing")
	require.ErrorIs(t, err, discover.ErrMissing)
	_, err = host.Run(t.Context(), "fails")
	require.EqualError(t, err, "fails: no daemon (exit code 3)")
	much, err := host.Run(t.Context(), "prints")
	require.NoError(t, err)
	require.Len(t, much, 1<<20)
	_, err = host.Run(t.Context(), "hangs")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestProjects keeps each project by its name: several of one directory, one whose files another program keeps, and one
// without files.
func TestProjects(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"srv/app/compose.yaml": file("services: {}\n"), "srv/My.Shop/compose.yaml": file("services: {}\n"),
		"srv/x/compose.yaml": file("name: chosen\nservices: {}\n"), "opt/idle/compose.yaml": file("services: {}\n"),
	}
	listed := `[{"Name":"blue","ConfigFiles":"/srv/app/compose.yaml"},{"Name":"app","ConfigFiles":"/srv/app/compose.yaml"},
{"Name":"green","ConfigFiles":"/srv/app/compose.yaml"},{"Name":"myshop","ConfigFiles":"/srv/My.Shop/compose.yaml"},{"Name":"chosen","ConfigFiles":"/srv/x/compose.yaml"},
{"Name":"portainer","ConfigFiles":"/data/compose/3/docker-compose.yml"},{"Name":"nofiles","ConfigFiles":"N/A"}]`
	found := discover.Look(t.Context(), discover.Host{Files: files, UID: 1000, Run: programs(map[string]string{"docker ps": "", "docker compose ls": listed})})
	var grants []string
	for _, project := range found.Projects {
		grants = append(grants, project.Name+": "+project.Grant())
	}
	require.Equal(t, []string{
		"nofiles: ", "portainer: ", "idle: /opt/idle", "myshop: /srv/My.Shop", "app: /srv/app", "blue: /srv/app -p blue", "green: /srv/app -p green", "chosen: /srv/x",
	}, grants)
}

// TestSwarm gives tasks of a service of a swarm the name of that service.
func TestSwarm(t *testing.T) {
	t.Parallel()
	listed := `{"Names":"web_app.1.s0m3t4sk","State":"running","Labels":"com.docker.swarm.service.name=web_app,com.docker.swarm.task.id=s0m3t4sk"}`
	found := discover.Look(t.Context(), discover.Host{Files: fstest.MapFS{}, UID: 1000, Run: programs(map[string]string{"docker ps": listed})})
	require.Equal(t, "web_app", found.Containers[0].Swarm)
}

// TestSSHConfiguration reads included files, and no words of comments.
func TestSSHConfiguration(t *testing.T) {
	t.Parallel()
	found := discover.Look(t.Context(), discover.Host{
		Files: fstest.MapFS{
			"home/ada/.ssh/config": file("Include work/*.conf ~/more\nInclude /etc/ssh/hosts # not these\n# Host commented\nHost nas # the old box\n" +
				"Host=pi #behind\nInclude config\n"),
			"home/ada/.ssh/work/a.conf": file("Host build1\n"), "home/ada/.ssh/work/b.txt": file("Host none\n"), "home/ada/more": file("host build2 *.lan\n"),
			"etc/ssh/hosts": file("Host db\n"), "home/ada/not": file("Host none\n"),
		},
		UID: 1000, Environ: []string{"HOME=/home/ada"}, Run: programs(nil),
	})
	require.Equal(t, []string{"build1", "build2", "db", "nas", "pi"}, found.SSHHosts)
}
