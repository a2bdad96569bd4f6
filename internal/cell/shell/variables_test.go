//go:build linux

package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/door"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

const (
	// passedToken is the value of a variable for gh and kubectl, keyOfTimeout that of one for timeout.
	passedToken  = "passed-token-4711"
	keyOfTimeout = "passed-key-4712"
)

// newHolder returns a person whose programs gh and kubectl print a variable that the policy gives them.
func newHolder(t *testing.T) *person {
	t.Helper()
	dir, programs := t.TempDir(), t.TempDir()
	for _, name := range []string{"gh", "kubectl", "glab"} {
		script := "#!/bin/sh\necho \"" + name + " has ${GH_TOKEN-nothing}\"\n"
		require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte(script), 0o755))
	}
	parsed, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	policy := parsed.WithPassed([]guard.Passed{{Variable: "T_*", Program: "timeout"}, {Variable: "GH_TOKEN", Program: "aws"}})
	policy.Directories = append([]string{programs}, policy.Directories...)
	session := cell.PostSession{
		Tier: 3, Place: guard.Place{Work: []string{dir}, Home: dir, Temp: dir, Path: []string{programs, "/usr/bin", "/bin"}},
		Passed: []string{"GH_TOKEN=" + passedToken, "T_KEY=" + keyOfTimeout},
	}
	post, err := cell.OpenPost(t.TempDir(), guard.New(policy, guard.Host{}), session, unlimited{}, func(cell.Entry) {})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, post.Close()) })
	return &person{post: post, dir: dir}
}

// printed runs a script in the shell of a CLI whose environment has a credential.
func (p *person) printed(t *testing.T, script string) string {
	t.Helper()
	command := p.command(t, script)
	command.Env = append(command.Env, "ANTHROPIC_API_KEY="+key, "GIT_CONFIG_KEY_0=core.hooksPath")
	output, err := command.CombinedOutput()
	require.NotNil(t, command.ProcessState, "%s: %v", script, err)
	return string(output)
}

// TestVariablesOfAProgram checks that the programs that the policy names for a variable get it, however they are
// started.
func TestVariablesOfAProgram(t *testing.T) {
	t.Parallel()
	p := newHolder(t)
	for _, script := range []string{
		"gh", "gh pr list | cat", "env gh", "timeout 5 gh", "printf 'x\\n' | xargs gh", "bash -c gh", "eval gh", "f() { gh; }; f",
		"find . -maxdepth 0 -exec gh \\;", "gh & wait", "echo $(gh)", "timeout 5 timeout 5 gh",
	} {
		require.Contains(t, p.printed(t, script), "gh has "+passedToken, script)
	}
	require.Contains(t, p.printed(t, "kubectl get pods"), "kubectl has "+passedToken, "it starts aws, which gets the variable")
	require.Contains(t, p.printed(t, "glab"), "glab has nothing")
	require.Contains(t, p.printed(t, "GH_TOKEN=own gh"), "gh has own")
	own := filepath.Join(p.dir, "gh")
	require.NoError(t, os.WriteFile(own, []byte("#!/bin/sh\necho own $GH_TOKEN"), 0o755))
	require.Equal(t, strings.Repeat("own\n", 2), p.printed(t, "./gh; "+own), "another file with that name")
	require.Contains(t, p.printed(t, "PATH=$PWD gh"), "gh has ", "the worker has looked it up")
}

// TestVariablesOfNobodyElse checks that nothing else prints such a variable, nor a credential of the CLI.
func TestVariablesOfNobodyElse(t *testing.T) {
	t.Parallel()
	p := newHolder(t)
	for _, script := range []string{
		"env", "printenv", "printenv GH_TOKEN T_KEY", "export -p", "declare -p", "set", "compgen -v", "sh -c env", "bash -c 'env; printenv'",
		`n=GH; n=${n}_TOKEN; echo "${!n}"`, `awk 'BEGIN { for (name in ENVIRON) print ENVIRON[name] }'`,
		"timeout 5 env", "timeout 5 timeout 5 printenv", "env -i env", "printf 'x\\n' | xargs env", "find . -maxdepth 0 -exec env \\;",
		"nice env & wait", "gh; env", `gh "$(env)"`, "perl -e 'print %ENV'", "cat /proc/self/environ /proc/$PPID/environ",
		"sleep 1 & tr '\\0' '\\n' < /proc/$!/environ", "sh -c 'sleep 0; env'",
	} {
		if denied := p.post.Try(script); denied != "" {
			continue
		}
		printed := p.printed(t, script)
		for _, value := range []string{passedToken, keyOfTimeout, key} {
			require.NotContains(t, strings.ReplaceAll(printed, "gh has "+passedToken, ""), value, script)
		}
	}
	require.Contains(t, p.printed(t, "env"), "GIT_CONFIG_KEY_0=core.hooksPath", "git needs it")
	require.NotContains(t, p.printed(t, "env"), door.SocketVariable)
}
