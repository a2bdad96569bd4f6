package setup

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

func TestPolicyCheck(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	denied := starter(t, environ, "policy", "check", "--tier", "2", "docker restart jellyfin && rm -rf /")
	require.Equal(t, console.ExitDenied, denied.Code)
	require.Equal(t, "Denied by: never: rm\nBecause:   it destroys the host, which no agent may do\nAt level:   full, kernel only\n", denied.Stdout)
	require.Equal(t, "claudeops: tier 2 may not do that\n", denied.Stderr)

	allowed := starter(t, environ, "policy", "check", "--tier", "2", "docker restart jellyfin && docker ps")
	require.Equal(t, program.ExitOK, allowed.Code, allowed.Stderr)
	require.Equal(t, "Allowed by: docker restart; docker ps\nCounts as:  restart of jellyfin\nAt level:   full, kernel only\n", allowed.Stdout)

	lower := starter(t, environ, "policy", "check", "--tier", "1", "docker restart jellyfin")
	require.Equal(t, console.ExitDenied, lower.Code)
	require.Contains(t, lower.Stdout, "docker restart is granted to Tier 2 only")

	open := starter(t, environ, "policy", "check", "--tier", "1", `for f in $(ls); do cat "$f"; done`)
	require.Equal(t, program.ExitOK, open.Code, open.Stderr)
	require.Equal(t, "Allowed by: ls\nAt run:     `cat \"$f\"` decides on the rest\nAt level:   full, kernel only\n", open.Stdout)
	require.Equal(t, "At run:     `cat $f` decides on the rest\nAt level:   full, kernel only\n", starter(t, environ, "policy", "check", "--tier", "1", `cat $f`).Stdout)
	require.NotContains(t, starter(t, environ, "policy", "check", "--tier", "3", "id").Stdout, "level", "the kernel judges no files of Tier 3")
}

func TestPolicyCheckAsJSON(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	check := func(code program.ExitCode, args ...string) map[string]any {
		got := starter(t, environ, append([]string{"policy", "check", "-o", "json"}, args...)...)
		require.Equal(t, code, got.Code, got.Stderr)
		var printed map[string]any
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &printed), got.Stdout)
		return printed
	}
	require.Equal(t, map[string]any{
		"tier": 2.0, "tool": "Bash", "command": "systemctl restart nginx", "verdict": "allowed", "allowed": true, "rule": "systemctl restart", "reason": "",
		"actions": []any{map[string]any{"kind": "restart", "service": "nginx"}},
	}, check(program.ExitOK, "--tier", "2", "systemctl restart nginx"))
	read := check(console.ExitDenied, "--tier", "1", "--tool", "Read", "--input", `{"file_path":"/etc/shadow"}`)
	require.Equal(t, "secrets", read["rule"])
	require.Equal(t, false, read["allowed"])
	require.Equal(t, "/etc/shadow may hold secrets, which agents do not read", read["reason"])
	require.Equal(t, []any{}, read["actions"])
}

// TestPolicyRun checks that a script runs as an agent's: its acts are judged one by one, and nothing else of it is
// lost.
func TestPolicyRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	environ := clitest.Environment(t, "PATH=/usr/bin:/bin", "TMPDIR="+t.TempDir(), "CLAUDEOPS_WORK_DIR="+dir)
	for script, want := range map[string]struct {
		code           program.ExitCode
		stdout, stderr string
	}{
		`n=shadow; cat /etc/$n; echo "then $?"`:           {0, "then 126\n", "The supervisor denies this command: /etc/shadow may hold secrets"},
		`set -e; n=shadow; cat < /etc/$n; echo then`:      {1, "", "/etc/shadow may hold secrets"},
		`for i in 3 1 2; do echo $i; done | sort | xargs`: {0, "1 2 3\n", ""},
		`echo $((6 * 7)); exit 5`:                         {5, "42\n", "the script ended with 5"},
		`echo > new`:                                      {126, "", "new is outside of what Tier 1 may reach"},
		`echo > $TMPDIR/new && cat $TMPDIR/new | wc -l`:   {0, "1\n", ""},
		`diff <(echo a) <(echo b) | tail -1`:              {0, "> b\n", ""},
		`docker ps; docker rm -f web`:                     {126, "", "The supervisor denies this call: docker rm is not granted"},
		`case $HOME in */sessions/policy-run-*/home) cd "$HOME" && echo own;; esac; echo $CLAUDEOPS_TIER`: {0, "own\n1\n", ""},
		`x=$(echo kill); $x 1`:                      {126, "", "kill is not granted at any tier"},
		`timeout 5 bash -c 'x=/etc; cat $x/shadow'`: {126, "", "/etc/shadow may hold secrets"},
	} {
		got := starter(t, environ, "policy", "run", "--tier", "1", script)
		require.Equal(t, want.code, got.Code, "%s: %s", script, got.Stderr)
		require.Equal(t, want.stdout, got.Stdout, script)
		require.Contains(t, got.Stderr, want.stderr, script)
	}
	left, err := os.ReadDir(filepath.Join(console.Variable(environ, "CLAUDEOPS_STATE_DIR"), "sessions"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestPolicyCheckInADirectory checks that --dir replaces the configured working directory.
func TestPolicyCheckInADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	environ := clitest.Environment(t, "TMPDIR="+t.TempDir())
	command := "sed -i s/a/b/ " + dir + "/x"
	require.Equal(t, console.ExitDenied, starter(t, environ, "policy", "check", "--tier", "2", command).Code)
	require.Equal(t, program.ExitOK, starter(t, environ, "policy", "check", "--tier", "2", "--dir", dir, command).Code)
}

// TestPolicyOfAFile uses a policy from a file instead of the built-in policy.
func TestPolicyOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	text := "version: 1\ntiers: {1: {read: [.]}, 2: {}, 3: {}}\nprograms:\n  frobnicate: {tier: 1, flags: \"-x --depth=INT\", args: \"NAME+\"}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	environ := clitest.Environment(t, "CLAUDEOPS_POLICY_FILE="+file)
	require.Equal(t, program.ExitOK, starter(t, environ, "policy", "check", "--tier", "1", "frobnicate -x web").Code)
	require.Equal(t, console.ExitDenied, starter(t, environ, "policy", "check", "--tier", "1", "docker ps").Code)
	require.Equal(t, `Tier 1. It may do what is listed here, and nothing else.

Programs, with their arguments, options, and conditions. X? may be left out, X+ is one or several, X* any number.

  frobnicate
    NAME+
        options: -x --depth=INT

Files that it reads (. is the working directory, ~ the agent's home)
  .
`, starter(t, environ, "policy", "explain", "--tier", "1").Stdout)

	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(text, "NAME+", "NAMES+")), 0o600))
	broken := starter(t, environ, "policy", "check", "--tier", "1", "frobnicate web")
	require.Equal(t, program.ExitUsage, broken.Code)
	require.Contains(t, broken.Stderr, `in line 4: programs: frobnicate: args: there is no type "NAMES"`)
}

// corpus copies a table of the guard's tests with its paths replaced by directories of this test. It returns the copy
// and the environment in which its expectations hold.
func corpus(t *testing.T, name string) (file string, environ []string) {
	t.Helper()
	root := t.TempDir()
	repository, home, temp := root+"/repo", root+"/agent", root+"/session"
	for _, dir := range []string{repository + "/.git", repository + "/config", repository + "/infra", repository + "/sub", repository + "/d", home + "/.claude", home + "/.local/state/claudeops", temp} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	for path, content := range map[string]string{
		"/.git/config":       "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@git.lan:ops/repo.git\n",
		"/compose.yaml":      "services:\n  jellyfin: {image: jellyfin}\n  sonarr: {image: sonarr}\n",
		"/.env":              "PASSWORD=x\n",
		"/config/nginx.conf": "events {}\n",
		"/vms.yaml":          "vms: []\n",
		"/infra/vms.yaml":    "vms: []\n",
		"/sub/README":        "",
	} {
		require.NoError(t, os.WriteFile(repository+path, []byte(content), 0o600))
	}
	for link, target := range map[string]string{
		"shadow-link": "/etc/shadow", "env-link": "/proc/self/environ", "etc-link": "/etc", "home-link": home, "volumes-link": "/volumes",
		"d/authorized_keys": home + "/.ssh/authorized_keys",
	} {
		require.NoError(t, os.Symlink(target, repository+"/"+link))
	}
	text, err := os.ReadFile(filepath.Join(simtest.ModuleRoot(t), "internal/cell/guard/testdata", name))
	require.NoError(t, err)
	harmless, err := os.ReadFile(filepath.Join(simtest.ModuleRoot(t), "internal/cell/guard/testdata/harmless.jsonl"))
	require.NoError(t, err)
	text = bytes.Join(slices.DeleteFunc(bytes.SplitAfter(text, []byte("\n")), func(line []byte) bool {
		call, _, is := bytes.Cut(line, []byte(`, "allowed"`))
		return is && bytes.Contains(harmless, append(call, ","...))
	}), nil)
	file = root + "/" + name
	here := strings.NewReplacer("/srv/repo", repository, "/home/agent", home, "/tmp/session", temp)
	require.NoError(t, os.WriteFile(file, []byte(here.Replace(string(text))), 0o600))
	return file, []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, simtest.WorkersUser, "TMPDIR=" + temp, "ANTHROPIC_API_KEY=sk-x", "CLAUDEOPS_WORK_DIR=" + repository,
		"CLAUDEOPS_CLAUDE_CONFIG_DIR=login", "TEMPORAL_ADDRESS=127.0.0.1:7233", "CLAUDEOPS_PASS_ENV=TERM=claude", "TERM=xterm",
	}
}

// TestPolicyTestOnTheCorpus runs `policy test` on the tables of the guard's own tests.
func TestPolicyTestOnTheCorpus(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"attacks.jsonl", "attacks-found.jsonl", "wanted.jsonl"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, environ := corpus(t, name)
			got := starter(t, environ, "policy", "test", file)
			require.Equal(t, program.ExitOK, got.Code, got.Stdout)
			require.Regexp(t, `(?m)^(\d{3,}) of (\d{3,}) calls are decided as expected, (\d+) of them only when they run`, got.Stdout)
		})
	}
}

func TestPolicyTestTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	table := `# a comment

{"tier":1,"command":"docker ps","allowed":true}
{"tier":1,"command":"docker restart web","allowed":true,"note":"we thought so"}
{"tier":1,"tool":"Read","input":{"file_path":"/etc/hosts"},"allowed":false}`
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(table), 0o600))
	environ := clitest.Environment(t)
	got := starter(t, environ, "policy", "test", file)
	require.Equal(t, console.ExitDenied, got.Code)
	require.Equal(t, `line 4, tier 1: docker restart web
  note: we thought so
  denied, and should be allowed
  by: docker restart
  because: docker restart is granted to Tier 2 only
line 5, tier 1: Read {"file_path":"/etc/hosts"}
  allowed, and should be denied
  by: paths
1 of 3 calls are decided as expected.
`, got.Stdout)
	require.Equal(t, "claudeops: 2 of 3 calls are not decided as expected\n", got.Stderr)

	asJSON := starter(t, environ, "policy", "test", file, "-o", "json")
	require.Equal(t, console.ExitDenied, asJSON.Code)
	var result testResult
	require.NoError(t, json.Unmarshal([]byte(asJSON.Stdout), &result))
	require.Equal(t, 3, result.Calls)
	require.Len(t, result.Differ, 2)
	require.Equal(t, 4, result.Differ[0].Line)
	require.True(t, result.Differ[0].Expected)
	require.JSONEq(t, `{"file_path":"/etc/hosts"}`, string(result.Differ[1].Input))
}

// TestPolicyTestNamesTheLine checks that the errors for unreadable tables name the line.
func TestPolicyTestNamesTheLine(t *testing.T) {
	t.Parallel()
	const good = `{"tier":1,"command":"ls","allowed":true}` + "\n\n"
	for name, tt := range map[string]struct{ line, want string }{
		"no JSON":          {`tier 1`, "line 3: invalid character"},
		"two objects":      {`{"tier":1,"command":"ls","allowed":true} {}`, "line 3: there is more than one JSON object"},
		"a field misspelt": {`{"tier":1,"command":"ls","permitted":true}`, `line 3: json: unknown field "permitted"`},
		"allowed missing":  {`{"tier":1,"command":"ls"}`, "line 3: allowed is missing: say true or false"},
		"tier missing":     {`{"command":"ls","allowed":true}`, "line 3: tier must be 1, 2 or 3"},
		"tier out of 1..3": {`{"tier":4,"command":"ls","allowed":true}`, "line 3: tier must be 1, 2 or 3"},
		"command missing":  {`{"tier":1,"allowed":true}`, "line 3: the command is missing"},
		"input missing":    {`{"tier":1,"tool":"Read","allowed":true}`, "line 3: the input of Read is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "calls.jsonl")
			require.NoError(t, os.WriteFile(file, []byte(good+tt.line+"\n"), 0o600))
			got := starter(t, clitest.Environment(t), "policy", "test", file)
			require.Equal(t, program.ExitUsage, got.Code)
			require.Contains(t, got.Stderr, file+", "+tt.want)
			require.Empty(t, got.Stdout)
		})
	}
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	require.NoError(t, os.WriteFile(empty, []byte("# nothing\n"), 0o600))
	got := starter(t, clitest.Environment(t), "policy", "test", empty)
	require.Equal(t, program.ExitUsage, got.Code)
	require.Contains(t, got.Stderr, "has no call in it")
}

func TestPolicyExplain(t *testing.T) {
	t.Parallel()
	environ := clitest.Environment(t)
	tier1 := starter(t, environ, "policy", "explain", "--tier", "1")
	require.Equal(t, program.ExitOK, tier1.Code, tier1.Stderr)
	require.Contains(t, tier1.Stdout, "\n  docker, podman\n")
	require.Contains(t, tier1.Stdout, "\n    stats NAME*\n        options: -a,--all --no-stream --no-trunc --format=TEXT\n        only with --no-stream\n")
	require.Contains(t, tier1.Stdout, "\nWhat no tier does\n  rm -r|-R|--recursive /|")
	require.NotContains(t, tier1.Stdout, "counts as a restart")
	for line := range strings.Lines(tier1.Stdout) {
		require.NotRegexp(t, `\s\n$`, line)
	}

	tier2 := starter(t, environ, "policy", "explain", "--tier", "2")
	require.Contains(t, tier2.Stdout, "\n    restart SERVICE+\n        options: -t,--time,--timeout=INT -s,--signal=NAME\n        counts as a restart of each service\n")
	require.Contains(t, tier2.Stdout, "\nBranches that no tier pushes to\n  main\n")

	tier3 := starter(t, environ, "policy", "explain", "--tier", "3")
	require.Contains(t, tier3.Stdout, "Tier 3. It may do anything but what is listed here.\n")
	require.NotContains(t, tier3.Stdout, "Programs")

	asJSON := starter(t, environ, "policy", "explain", "--tier", "2", "-o", "json")
	require.Equal(t, program.ExitOK, asJSON.Code, asJSON.Stderr)
	var explained guard.Explanation
	require.NoError(t, json.Unmarshal([]byte(asJSON.Stdout), &explained))
	require.Equal(t, 2, explained.Tier)
	require.NotEmpty(t, explained.Grants)
	require.NotEmpty(t, explained.Never)
}
