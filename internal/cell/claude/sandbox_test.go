package claude

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// TestSandboxHasWhatTheCLINeeds checks the paths that CLI.sandbox adds to a sandbox.
func TestSandboxHasWhatTheCLINeeds(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	program := filepath.Join(home, "lib", "node_modules", "@anthropic-ai", "claude-code", "cli.js")
	bin, config, ca := filepath.Join(home, "bin"), filepath.Join(home, "config"), filepath.Join(home, "ca.pem")
	for _, dir := range []string{filepath.Dir(program), bin, config} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(program, nil, 0o700))
	require.NoError(t, os.WriteFile(ca, nil, 0o600))
	require.NoError(t, os.Symlink(program, filepath.Join(bin, "claude")))
	environ := []string{"PATH=" + bin + ":" + home + ":/nowhere", "NODE_EXTRA_CA_CERTS=" + ca, "SHELL=sh"}
	cli := &CLI{path: filepath.Join(bin, "claude"), options: Options{ConfigDir: config}}

	require.Nil(t, cli.sandbox(Invocation{}, environ))
	asked := &Sandbox{Hidden: []string{home}, Readable: []string{"/a"}, Writable: []string{"/b"}, Signals: true}
	got := cli.sandbox(Invocation{Sandbox: asked}, environ)
	self, err := os.Executable()
	require.NoError(t, err)
	require.Equal(t, []string{"/a", program, filepath.Join(home, "lib", "node_modules"), self, bin, filepath.Dir(program), ca}, got.Readable,
		"a home is not granted because PATH names it")
	require.Equal(t, []string{"/b", config}, got.Writable)
	require.True(t, got.Signals)
	require.Nil(t, got.Executable, "no limit")
	limited := &Sandbox{Executable: []string{"/bin/x"}}
	executable := cli.sandbox(Invocation{Sandbox: limited}, environ).Executable
	require.Subset(t, executable, []string{"/bin/x", program, self})
	require.NotContains(t, executable, bin)
	require.Equal(t, []string{"/bin/x"}, limited.Executable, "what was asked for stays as it is")
	require.Equal(t, []string{"/a"}, asked.Readable, "what was asked for stays as it is")
	judged := &Sandbox{Readable: []string{"/a"}, Opens: &process.Opens{HeldRead: []string{"/etc"}}}
	require.Equal(t, []string{"/etc", "/a", ca}, cli.sandbox(Invocation{Sandbox: judged}, environ).Opens.HeldRead)
	require.Equal(t, []string{"/etc"}, judged.Opens.HeldRead)
}

// TestSandboxOfALogin checks that the CLI may write the files of the login.
func TestSandboxOfALogin(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir, settings := filepath.Join(home, ".claude"), filepath.Join(home, ".claude.json")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(settings, nil, 0o600))
	cli := &CLI{path: "/bin/true", options: Options{Environ: []string{"HOME=" + home}}}
	require.Equal(t, []string{settings, dir}, cli.sandbox(Invocation{Sandbox: &Sandbox{}}, nil).Writable)
}

// TestOnlyTheCLIReachesItsAPI checks the rule for the endpoint of a session's API: it excepts the CLI's files, and not
// the loader of programs. If a shell starts the CLI, there is no rule.
func TestOnlyTheCLIReachesItsAPI(t *testing.T) {
	t.Parallel()
	self, err := filepath.EvalSymlinks(os.Args[0])
	require.NoError(t, err)
	script := filepath.Join(t.TempDir(), "claude")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexec node cli.js\n"), 0o700))
	at := func(url string) Invocation {
		return Invocation{API: &Endpoint{URL: url}, Sandbox: &Sandbox{Opens: &process.Opens{}}}
	}
	rules := (&CLI{path: self}).sandbox(at("http://127.0.0.1:4321"), nil).Opens.Addresses
	require.Len(t, rules, 1)
	require.Equal(t, []any{true, 4321, []string{self}}, []any{rules[0].Here, rules[0].Port, rules[0].Except})
	require.Empty(t, (&CLI{path: script}).sandbox(at("http://127.0.0.1:4321"), nil).Opens.Addresses)
	require.Empty(t, (&CLI{path: self}).sandbox(at("https://gateway.lan"), nil).Opens.Addresses)
	require.Empty(t, (&CLI{path: self}).sandbox(Invocation{Sandbox: &Sandbox{Opens: &process.Opens{}}}, nil).Opens.Addresses)
}
