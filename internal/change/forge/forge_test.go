package forge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/change/forge"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	both := forge.Programs()
	for name, c := range map[string]struct {
		host   string
		usable []forge.Program
		knows  forge.Program
		want   forge.Program
	}{
		"GitHub":                        {"github.com", both, "", forge.GitHub},
		"GitHub Enterprise":             {"github.example.org", both, "", forge.GitHub},
		"GitLab":                        {"gitlab.com", both, "", forge.GitLab},
		"a GitLab of one's own":         {"gitlab.example.org:8443", both, "", forge.GitLab},
		"capital letters":               {"GitLab.example.org", both, "", forge.GitLab},
		"not granted":                   {"github.com", nil, "", ""},
		"only the other one is granted": {"github.com", []forge.Program{forge.GitLab}, "", ""},
		"the name wins over a login":    {"gitlab.example.org", both, forge.GitHub, forge.GitLab},
		"a login of gh":                 {"code.example.org", both, forge.GitHub, forge.GitHub},
		"a login of glab":               {"code.example.org", both, forge.GitLab, forge.GitLab},
		"no login":                      {"code.example.org", both, "", ""},
		"a login that is not granted":   {"code.example.org", []forge.Program{forge.GitHub}, forge.GitLab, ""},
	} {
		require.Equal(t, c.want, forge.Choose(c.host, c.usable, func(p forge.Program) bool { return p == c.knows }), name)
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ push, fetch, host, path string }{
		"https":                       {"https://github.com/acme/infra.git", "https://github.com/acme/infra.git", "github.com", "acme/infra"},
		"a token in the address":      {"https://x:secret@github.com/acme/infra", "", "github.com", "acme/infra"},
		"scp":                         {"git@github.com:acme/infra.git", "", "github.com", "acme/infra"},
		"ssh":                         {"ssh://git@gitlab.example.org:2222/ops/net/infra.git", "", "gitlab.example.org", "ops/net/infra"},
		"ssh at port 443":             {"ssh://git@ssh.github.com:443/acme/infra.git", "", "github.com", "acme/infra"},
		"pushes with ssh":             {"git@github.com:acme/infra", "https://github.com/Acme/infra/", "github.com", "acme/infra"},
		"an HTTP port":                {"git@git.example.org:a/b", "https://git.example.org:8443/a/b.git", "git.example.org:8443", "a/b"},
		"pushes to a directory":       {"/srv/mirror.git", "https://github.com/acme/infra", "github.com", "acme/infra"},
		"pushes to a fork":            {"git@github.com:me/infra", "https://github.com/acme/infra", "", ""},
		"pushes to another host":      {"git@github.com:acme/infra", "https://gitlab.com/acme/infra", "", ""},
		"a directory":                 {"/srv/infra.git", "/srv/infra.git", "", ""},
		"a relative directory":        {"../infra.git", "https://github.com/acme/infra", "", ""},
		"a file address":              {"file:///srv/infra.git", "file:///srv/infra.git", "", ""},
		"a name of SSH's settings":    {"git@work:acme/infra", "", "", ""},
		"no owner":                    {"https://github.com/infra", "", "", ""},
		"outside":                     {"https://github.com/../infra", "", "", ""},
		"an option":                   {"https://github.com/-acme/infra", "", "", ""},
		"a query":                     {"https://github.com/acme/infra%3Fx", "", "", ""},
		"a host that is an option":    {"git@-x.github.com/:acme/infra", "", "", ""},
		"a helper that runs commands": {"ext::sh -c x", "ext::sh -c x", "", ""},
		"nothing":                     {"", "", "", ""},
	} {
		host, path, found := forge.Locate(c.push, c.fetch)
		require.Equal(t, c.path != "", found, name)
		if found {
			require.Equal(t, []string{c.host, c.path}, []string{host, path}, name)
		}
	}
}
