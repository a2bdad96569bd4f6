package cell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// TestSecretsInUsrLocal checks that files with private names are refused in /usr/local, where people put files of their
// own, and given to programs where packages have them.
func TestSecretsInUsrLocal(t *testing.T) {
	t.Parallel()
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("/usr/local/etc", "claudeops-test-") //nolint:usetesting // where it is about
	if err != nil {
		require.Empty(t, os.Getenv("CI"), err)
		t.Skip(err)
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	for _, name := range []string{".env", "notes"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("content of "+name+"\n"), 0o644))
	}
	rules := fileRules(policy.FileRules(1), nil, nil, nil)
	require.NotContains(t, rules.Clear, "/usr")
	require.Subset(t, rules.Clear, []string{"/usr/bin", "/usr/share", "/usr/lib", "/lib", "/usr/local/go"})
	var printed strings.Builder
	exit, err := process.Run(t.Context(), process.Spec{
		Path: "/bin/cat", Args: []string{filepath.Join(dir, ".env"), filepath.Join(dir, "notes")}, Stdout: &printed,
		Containment: process.ModeSubreaper, Sandbox: &process.Sandbox{Opens: rules},
	})
	require.NoError(t, err)
	if !exit.Sandbox.Opens {
		require.Empty(t, os.Getenv("CI"), exit.Sandbox)
		t.Skip(exit.Sandbox)
	}
	require.Equal(t, "content of notes\n", printed.String())
}

// TestKeysAmongCertificates checks that programs read certificates of the system, and no key that stands among them.
func TestKeysAmongCertificates(t *testing.T) {
	t.Parallel()
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	rules := fileRules(policy.FileRules(1), nil, nil, nil)
	for _, parent := range []string{"/etc/ssl/certs", "/etc/pki/tls/certs"} {
		if os.MkdirAll(parent, 0o755) != nil { //nolint:gosec // as the system makes it
			require.Empty(t, os.Getenv("CI"), parent)
			continue
		}
		dir, err := os.MkdirTemp(parent, "claudeops-test-") //nolint:usetesting // where it is about
		if err != nil {
			require.Empty(t, os.Getenv("CI"), err)
			t.Skip(err)
		}
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		for _, name := range []string{"a.key", "a.pem", "id_rsa", "a.p12", "privkey1.pem", "server-key.pem"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("content of "+name+"\n"), 0o644))
		}
		var printed strings.Builder
		exit, err := process.Run(t.Context(), process.Spec{
			Path: "/bin/grep", Args: []string{"-rh", "", dir}, Stdout: &printed,
			Containment: process.ModeSubreaper, Sandbox: &process.Sandbox{Opens: rules},
		})
		require.NoError(t, err)
		if !exit.Sandbox.Opens {
			require.Empty(t, os.Getenv("CI"), exit.Sandbox)
			t.Skip(exit.Sandbox)
		}
		require.Equal(t, "content of a.pem\n", printed.String())
	}
}

// TestProbeNamesTheGaps checks that people are told what is open where the kernel does not judge files and connections.
func TestProbeNamesTheGaps(t *testing.T) {
	t.Parallel()
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	for mode, want := range map[process.Mode][]string{
		process.ModeSubreaper: nil, process.ModeNamespace: {openFiles, openConnections},
	} {
		options := Options{Sandbox: SandboxIfPossible, Policy: policy, Driver: claude.Options{Containment: mode}}
		found, err := Probe(t.Context(), options, t.TempDir(), false)
		require.NoError(t, err)
		if mode == process.ModeSubreaper && !strings.Contains(found.Sandboxes, "files judged") {
			require.Empty(t, os.Getenv("CI"), found)
			t.Skip(found)
		}
		require.Equal(t, want, found.Gaps, mode)
	}
}
