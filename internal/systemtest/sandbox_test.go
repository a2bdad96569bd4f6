//go:build linux

package systemtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// secretFiles returns files that agents of Tiers 1 and 2 must not read: a key in the worker's home, a token in the
// state directory, a temporary file of another session, and the records if they are in a file. It creates all but the
// records.
func secretFiles(t *testing.T, cfg config.Config, home string) map[string]string {
	t.Helper()
	key := filepath.Join(home, ".ssh", "id_ed25519")
	require.NoError(t, os.MkdirAll(filepath.Dir(key), 0o700))
	require.NoError(t, os.WriteFile(key, []byte("PRIVATE KEY"), 0o600))
	token := filepath.Join(cfg.State.Dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("PRIVATE KEY"), 0o600))
	neighbour, err := os.MkdirTemp("", "claudeops-") //nolint:usetesting // where workers make such directories
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(neighbour)) })
	neighbour = filepath.Join(neighbour, "file")
	require.NoError(t, os.WriteFile(neighbour, []byte("PRIVATE KEY"), 0o600))
	files := map[string]string{"key": key, "token": token, "neighbour": neighbour, "records": cfg.State.DatabaseFile()}
	maps.DeleteFunc(files, func(_, path string) bool { return path == "" })
	return files
}

// TestSandboxOfTheTiers lets each tier of the real CLI try to read the worker's files and to write, with commands that
// its rules permit. Tier 2 continues the conversation of Tier 1, and Tier 3 continues that of Tier 2.
func TestSandboxOfTheTiers(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		work := t.TempDir()
		environ := environment(t, cli, "CLAUDEOPS_SANDBOX=auto", "CLAUDEOPS_WORK_DIR="+work, "ANTHROPIC_API_KEY=not-a-key")
		cfg, err := config.Load(environ)
		require.NoError(t, err)
		require.NoError(t, cfg.MakeDirs())
		try := ""
		files := secretFiles(t, cfg, homeIn(environ))
		names := slices.Sorted(maps.Keys(files))
		for _, name := range names {
			try += "head -c 11 " + files[name] + " > /dev/null && echo " + name + "; "
		}
		try += `cat /proc/` + strconv.Itoa(os.Getpid()) + `/environ > /dev/null && echo saw; `
		try += `echo x > "$TMPDIR/own" && echo x > "$HOME/own" && echo x > "$CLAUDEOPS_CHAIN_DIR/own" && echo own; echo x > ` + work + `/file && echo wrote; ` +
			`touch ` + homeIn(environ) + `/elsewhere && echo elsewhere; ls / > /dev/null && cat /proc/meminfo > /dev/null && echo looked`
		tries := unseen(t, work, try)
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Model: "haiku"}, tries, claudesim.Conclude(asksFor(2))),
			claudesim.On(claudesim.Match{Model: "sonnet"}, tries, claudesim.Conclude(asksFor(3))),
			claudesim.On(claudesim.Match{Model: "opus"}, tries, claudesim.Conclude(resolved()))))
		s := startSite(t, startTemporal(t), append(environ, "ANTHROPIC_BASE_URL="+api.URL()))
		chain, err := s.finish(s.start(nil))
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		require.Len(t, chain.Sessions, 3)
		requireSandbox(t, chain.Sessions[:2]...)
		require.Equal(t, "guard only: none at tier 3", chain.Sessions[2].Sandbox)
		for i := range chain.Sessions[1:] {
			require.Equal(t, escalation.ContinuityResume, chain.Sessions[i+1].Continuity)
		}
		said := map[string]string{}
		for _, request := range api.Requests() {
			if results := request.ToolResults(); len(results) > 0 {
				said[modelOf(request.Model)] = words(results[len(results)-1])
			}
		}
		require.Equal(t, "own looked", said["haiku"])
		require.Equal(t, "own wrote looked", said["sonnet"])
		require.Equal(t, strings.Join(names, " ")+" saw own wrote elsewhere looked", said["opus"], "the attempts work where nothing keeps them")
	})
}

// TestSearchOfTheCLI lets the tool Grep of the real CLI search a directory with a secret, under the built-in policy.
func TestSearchOfTheCLI(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		work := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(work, ".env"), []byte("PASSWORD=of the database\n"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(work, "notes"), []byte("PASSWORD of nothing\n"), 0o644))
		environ := environment(t, cli, "CLAUDEOPS_SANDBOX=auto", "CLAUDEOPS_POLICY_FILE=", "CLAUDEOPS_WORK_DIR="+work, "ANTHROPIC_API_KEY=not-a-key")
		api := simtest.StartAPI(t, claudesim.Play(claudesim.On(claudesim.Match{Model: "haiku"},
			claudesim.Call("Grep", map[string]any{"pattern": "PASSWORD", "path": work, "output_mode": "content"}), claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))))
		s := startSite(t, startTemporal(t), append(environ, "ANTHROPIC_BASE_URL="+api.URL()))
		chain, err := s.finish(s.start(nil))
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeHealthy, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		requireSandbox(t, chain.Sessions...)
		require.Contains(t, chain.Last().Sandbox, "files judged when opened")
		var results []string
		for _, request := range api.Requests() {
			results = append(results, request.ToolResults()...)
		}
		require.Contains(t, strings.Join(results, "\n"), "of nothing")
		require.NotContains(t, strings.Join(results, "\n"), "of the database")
	})
}

// TestSandboxOfAWorktree lets Tier 2 of the real CLI work with git in its worktree. It can commit and make branches. It
// cannot see the worker's files. It cannot write the repository's hooks and configuration, because these run programs
// elsewhere. It also cannot write the directory from which the worktree was made.
func TestSandboxOfAWorktree(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		live := newRepository(t)
		gitIn(t, live, "remote", "add", "origin", "https://git.example/repo")
		gitIn(t, live, "update-ref", "refs/remotes/origin/main", "HEAD")
		environ := environment(t, cli, "CLAUDEOPS_SANDBOX=auto", "CLAUDEOPS_WORK_DIR="+live, "ANTHROPIC_API_KEY=not-a-key")
		cfg, err := config.Load(environ)
		require.NoError(t, err)
		require.NoError(t, cfg.MakeDirs())
		token := secretFiles(t, cfg, homeIn(environ))["token"]
		script := strings.Join([]string{
			"echo 2 > limit && git commit --quiet --all --message raise && echo committed", "git switch --quiet --create fix origin/main && echo switched",
			"git status --short --branch > /dev/null && echo clean", "git stash list && git gc --quiet --auto && echo kept",
			"cat " + live + "/limit > /dev/null && echo read", "echo x > " + live + "/.git/hooks/post-commit && echo hooked",
			"git config core.fsmonitor evil && echo configured", "echo x >> " + live + "/.git/config && echo appended",
			"echo x > " + live + "/new && echo wrote", "cat " + token + " && echo token",
		}, "; ")
		api := simtest.StartAPI(t, claudesim.Play(concluding("haiku", asksFor(2)),
			claudesim.On(claudesim.Match{Model: "sonnet"}, unseen(t, t.TempDir(), script), claudesim.Conclude(resolved()))))
		s := startSite(t, startTemporal(t), append(environ, "ANTHROPIC_BASE_URL="+api.URL()))
		chain, err := s.finish(s.start(nil))
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		requireSandbox(t, chain.Sessions...)
		require.NotNil(t, chain.Last().Worktree)
		require.Equal(t, 1, chain.Last().Worktree.Commits)
		var said []string
		for _, request := range api.Requests() {
			said = append(said, request.ToolResults()...)
		}
		require.Contains(t, words(strings.Join(said, "\n")), "committed switched clean kept read")
		for _, word := range []string{"hooked", "configured", "appended", "wrote", "token"} {
			require.NotContains(t, strings.Fields(words(strings.Join(said, "\n"))), word)
		}
		requireUntouched(t, live)
	})
}

// unseen returns a call that runs a script from a file. The guard does not see the commands in it, so only other
// protection remains.
func unseen(t *testing.T, work, script string) claudesim.Reply {
	t.Helper()
	file := filepath.Join(work, "try.sh")
	require.NoError(t, os.WriteFile(file, []byte(script), 0o644))
	return claudesim.Bash("bash " + file)
}

// words returns the words that the attempts print, without the shell's error messages.
func words(result string) string {
	var said []string
	for line := range strings.Lines(result) {
		if line = strings.TrimSpace(line); line != "" && !strings.ContainsAny(line, " :<>") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

func modelOf(full string) string {
	for _, model := range []string{"haiku", "sonnet", "opus"} {
		if strings.Contains(full, model) {
			return model
		}
	}
	return full
}

// TestSandboxRequired checks that no agent runs if the required sandbox is unavailable, and that the error says why.
func TestSandboxRequired(t *testing.T) {
	t.Parallel()
	claude := simtest.Install(t, claudesim.Play(claudesim.Always(claudesim.Conclude(resolved()))))
	environ := environment(t, claude, "CLAUDEOPS_SANDBOX=require-kernel", "CLAUDEOPS_CONTAINMENT=group")
	s := startSite(t, startTemporal(t), environ)
	chain, err := s.finish(s.start(nil))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeFailed, chain.Outcome)
	require.Len(t, chain.Sessions, 1)
	require.Equal(t, 1, chain.Sessions[0].Attempts, "another attempt would come to the same")
	require.Contains(t, chain.Sessions[0].Error, "the agent's sandbox is required, and not to be had here")
	for _, launch := range simtest.Launches(t, claude) {
		require.Contains(t, launch.Args, "--version", "no session was started")
	}
	_, err = supervisor.ProbeSandbox(t.Context(), s.cfg, environ)
	require.ErrorContains(t, err, "the agent's sandbox is required")
}

// homeIn returns the HOME in environ.
func homeIn(environ []string) string {
	for _, variable := range slices.Backward(environ) {
		if value, found := strings.CutPrefix(variable, "HOME="); found {
			return value
		}
	}
	return ""
}

// agentsName is a user that exists on every system and is not root.
const agentsName = "daemon"

// reachable returns a path of the executable at which the account can run it. If needed, it links or copies the
// executable to an open directory.
func reachable(t *testing.T, cli string, account *config.Account) string {
	t.Helper()
	resolved, err := filepath.EvalSymlinks(cli)
	require.NoError(t, err)
	user := &process.User{UID: account.UID, GID: account.GID}
	if process.MayRun(user, resolved) == nil {
		return resolved
	}
	place := filepath.Join(openDir(t), filepath.Base(resolved))
	if os.Link(resolved, place) == nil {
		return place
	}
	content, err := os.ReadFile(resolved)
	require.NoError(t, err)
	require.NoError(t, process.WriteProgram(place, content))
	return place
}

// openDir returns a temporary directory that every user can enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "supervisor-test-") //nolint:usetesting // below t.TempDir another user sees nothing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // for another user
	return dir
}

// TestAgentsAsAnotherUser runs a chain of the real CLI whose agents run as another user. At Tier 3 there is no
// sandbox, so only the other user separates the agent from the worker.
func TestAgentsAsAnotherUser(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		if os.Geteuid() != 0 {
			t.Skip("only the superuser changes users")
		}
		home := openDir(t)
		state, temporary := filepath.Join(home, "state"), filepath.Join(home, "tmp")
		require.NoError(t, os.Mkdir(temporary, 0o700))
		require.NoError(t, os.Chmod(temporary, 0o777|os.ModeSticky))
		settings := []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CLAUDEOPS_STATE_DIR=" + state, "CLAUDEOPS_GATE_TIMEOUT=0s",
			"CLAUDEOPS_TASK_QUEUE=" + nameOf(t),
			"CLAUDEOPS_AGENT_USER=" + agentsName, "ANTHROPIC_API_KEY=not-a-key",
			"CLAUDEOPS_PASS_ENV=CLAUDE_CODE_TMPDIR", "CLAUDE_CODE_TMPDIR=" + temporary, // the temporary directory of Tier 3
			"CLAUDEOPS_POLICY_FILE=" + simtest.OpenPolicy(t),
		}
		cfg, err := config.Load(settings)
		require.NoError(t, err)
		settings = append(settings, "CLAUDEOPS_CLAUDE="+reachable(t, cli, cfg.Claude.Account))
		require.NoError(t, cfg.MakeDirs())
		try := "id -un; "
		for name, file := range secretFiles(t, cfg, home) {
			try += "head -c 11 " + file + " > /dev/null && echo " + name + "; "
		}
		try += `cat /proc/` + strconv.Itoa(os.Getpid()) + `/environ > /dev/null && echo saw; ` +
			`kill -0 ` + strconv.Itoa(os.Getpid()) + ` && echo killed; ls ` + state + ` && echo listed; ` +
			`echo x > "$HOME/own" && echo x > own && echo x > "$CLAUDEOPS_CHAIN_DIR/own" && echo own`
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash(`id -un; echo x > "$TMPDIR/own" && echo own`), claudesim.Conclude(asksFor(3))),
			claudesim.On(claudesim.Match{Model: "opus"}, unseen(t, cfg.Claude.WorkDir, try), claudesim.Conclude(resolved()))))
		self, err := os.Executable()
		require.NoError(t, err)
		s, _ := newSite(t, startTemporal(t), append(settings, "ANTHROPIC_BASE_URL="+api.URL()), reachable(t, self, cfg.Claude.Account))
		s.begin()
		chain, err := s.finish(s.start(nil))
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		require.Len(t, chain.Sessions, 2)
		require.Equal(t, escalation.ContinuityResume, chain.Sessions[1].Continuity)
		require.Equal(t, "user only: none at tier 3, as user "+agentsName, chain.Sessions[1].Sandbox)
		said := map[string]string{}
		for _, request := range api.Requests() {
			if results := request.ToolResults(); len(results) > 0 {
				said[modelOf(request.Model)] = words(results[len(results)-1])
			}
		}
		require.Equal(t, map[string]string{"haiku": agentsName + " own", "opus": agentsName + " own"}, said)
		archived, err := filepath.Glob(filepath.Join(cfg.State.TranscriptsDir(), chain.Sessions[1].SessionID, "*"))
		require.NoError(t, err)
		require.NotEmpty(t, archived, "the worker reads the conversation")
	})
}

// TestAgentUserThatCannotWork checks that a user without access to the agents' directories is refused at the start
// with a clear error.
func TestAgentUserThatCannotWork(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser changes users")
	}
	closed := t.TempDir()
	require.NoError(t, os.Chmod(closed, 0o700)) //nolint:gosec // a directory
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + closed, "CLAUDEOPS_STATE_DIR=" + filepath.Join(closed, "state"),
		"CLAUDEOPS_AGENT_USER=" + agentsName, "CLAUDEOPS_CLAUDE=/bin/true",
	}
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.NoError(t, cfg.MakeDirs())
	err = supervisor.CheckUser(t.Context(), cfg, environ)
	require.ErrorContains(t, err, "CLAUDEOPS_AGENT_USER=daemon cannot get at a directory of the agents")
}

// TestAgentUserThatCannotRunTheWorker checks that a user who cannot execute the worker's program is refused at the
// start. Without that program the CLI cannot ask the guard.
func TestAgentUserThatCannotRunTheWorker(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser changes users")
	}
	home := openDir(t)
	worker := filepath.Join(home, "worker")
	require.NoError(t, os.WriteFile(worker, []byte("#!/bin/sh\n"), 0o700))
	claude := filepath.Join(home, "claude")
	require.NoError(t, os.WriteFile(claude, []byte("#!/bin/sh\necho '2.1.332 (Claude Code)'\n"), 0o755))
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CLAUDEOPS_STATE_DIR=" + filepath.Join(home, "state"), "CLAUDEOPS_AGENT_USER=" + agentsName,
		"CLAUDEOPS_CLAUDE=" + claude,
	}
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	_, err = supervisor.New(t.Context(), cfg, supervisor.Environment{Environ: environ, Logger: quiet(), Executable: worker})
	require.ErrorContains(t, err, "CLAUDEOPS_AGENT_USER=daemon: agents cannot be guarded: this program asks about their calls, and their user "+
		"cannot run it: the user daemon cannot run "+worker)
}
