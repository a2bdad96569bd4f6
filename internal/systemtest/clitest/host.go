package clitest

import (
	"context"
	"strings"
	"testing/fstest"

	"github.com/claudeops/claudeops/internal/desk/discover"
)

// Host is a machine for init to look at, with programs that print what is given for the beginning of their command
// lines.
type Host struct {
	UID      int
	Files    fstest.MapFS
	Programs map[string]string
}

// Machine returns the machine, seen with this environment.
func (h Host) Machine(environ []string) discover.Host {
	files := h.Files
	if files == nil {
		files = fstest.MapFS{}
	}
	return discover.Host{
		Files: files, Environ: environ, Hostname: "nas", UID: h.UID,
		Run: func(_ context.Context, name string, args ...string) (string, error) {
			words := strings.Join(append([]string{name}, args...), " ")
			for call, printed := range h.Programs {
				if strings.HasPrefix(words, call) {
					return printed, nil
				}
			}
			return "", discover.ErrMissing
		},
	}
}

// MediaHost is a machine with a Compose project. Its user has hosts for ssh, and sudo without a password.
func MediaHost(uid int) Host {
	return Host{
		UID: uid,
		Files: fstest.MapFS{
			"etc/os-release":                    {Data: []byte("PRETTY_NAME=\"Debian GNU/Linux 12\"\n")},
			"etc/systemd/system/backup.service": {},
			"home/ada/.ssh/config":              {Data: []byte("Host pi web1\n")},
			"srv/media/compose.yaml":            {},
			"opt/shop/compose.yaml":             {},
		},
		Programs: map[string]string{
			"docker ps": `{"Names":"media-jellyfin-1","State":"running",` +
				`"Labels":"com.docker.compose.project=media,com.docker.compose.service=jellyfin"}` + "\n" +
				`{"Names":"watchtower","State":"running"}`,
			"docker compose ls": `[{"Name":"media","ConfigFiles":"/srv/media/compose.yaml"}]`,
			"sudo -n -l":        "(ALL) NOPASSWD: ALL",
		},
	}
}
