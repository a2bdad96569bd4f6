package systemtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// gitIn runs git in a directory, as a person would.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	return strings.TrimSpace(string(output))
}

// newRepository makes a repository with one commit on the branch main.
func newRepository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	gitIn(t, dir, "init", "--quiet", "--initial-branch=main")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "limit"), []byte("1\n"), 0o600))
	gitIn(t, dir, "add", "--all")
	gitIn(t, dir, "commit", "--quiet", "--message", "first")
	return dir
}

// requireUntouched checks that nobody has worked in the directory of a repository itself.
func requireUntouched(t *testing.T, dir string) {
	t.Helper()
	require.Equal(t, "main", gitIn(t, dir, "branch", "--show-current"))
	require.Equal(t, "1", gitIn(t, dir, "rev-list", "--count", "HEAD"))
	require.Empty(t, gitIn(t, dir, "status", "--porcelain"))
}

// keptEvents returns the messages of the events that name the place of a chain's work.
func keptEvents(chain escalation.Chain) (messages []string) {
	for _, event := range chain.Events {
		if event.Kind == escalation.EventWorktreeKept {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

// aboutEach returns turns in which Tier 1 finds one service broken: alpha or beta, as requested. Chains of the same
// service would not repair at the same time.
func aboutEach(rest ...claudesim.Turn) claudesim.Scenario {
	var turns []claudesim.Turn
	for _, service := range []string{"alpha", "beta"} {
		verdict := asksFor(2)
		verdict.Services = []string{service}
		turns = append(turns, claudesim.On(claudesim.Match{Model: "haiku", Prompt: "`" + service + "`"}, claudesim.Conclude(verdict)))
	}
	return claudesim.Play(append(turns, rest...)...)
}

// startEach starts one chain for alpha and one for beta.
func (s *site) startEach() []client.WorkflowRun {
	s.t.Helper()
	var runs []client.WorkflowRun
	for _, service := range []string{"alpha", "beta"} {
		runs = append(runs, s.startAs(service+"-"+nameOf(s.t), map[string]any{"services": []string{service}}))
	}
	return runs
}

// TestTwoChainsRepairOneRepository lets two chains repair in one repository at the same time. Each waits for the other
// in the middle of its work. Each has its own worktree and branch, and the directory itself stays unchanged.
func TestTwoChainsRepairOneRepository(t *testing.T) {
	t.Parallel()
	live, meeting := newRepository(t), t.TempDir()
	script := `pwd > "` + meeting + `/$CLAUDEOPS_CHAIN_ID"; until [ $(ls "` + meeting + `" | wc -l) = 2 ]; do sleep 0.05; done; ` +
		`echo "$CLAUDEOPS_CHAIN_ID" > limit && git commit --quiet --all --message raise`
	claude := simtest.Install(t, aboutEach(claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash(script), claudesim.Conclude(resolved()))))
	s := startSite(t, startTemporal(t), environment(t, claude, "CLAUDEOPS_WORK_DIR="+live))
	for _, run := range s.startEach() {
		chain, err := s.finish(run)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		require.Nil(t, chain.Sessions[0].Worktree, "Tier 1 looks at the directory itself")
		tree := chain.Last().Worktree
		require.NotNil(t, tree)
		place, err := os.ReadFile(filepath.Join(meeting, run.GetID()))
		require.NoError(t, err)
		require.Equal(t, tree.Path, strings.TrimSpace(string(place)))
		require.True(t, strings.HasPrefix(tree.Path, s.cfg.WorktreesDir()+"/"), tree.Path)
		require.Equal(t, escalation.Worktree{Path: tree.Path, Branch: tree.Branch, Origin: live, New: true, Kept: true, Commits: 1}, *tree)
		require.Equal(t, run.GetID(), gitIn(t, live, "show", tree.Branch+":limit"))
		require.Equal(t, []string{tree.Describe("host-1")}, keptEvents(chain))
		requireRecorded(t, s, chain)
	}
	requireUntouched(t, live)
}

// TestTiersOfAChainShareAWorktree runs all tiers of a chain in a repository, on the stand-in and on the real CLI. Each
// tier continues the conversation of the previous tier, although Tier 1 works in the directory itself. Tier 3 finds the
// files that Tier 2 has left.
func TestTiersOfAChainShareAWorktree(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for _, version := range simtest.NewestVersions(t) {
		for _, start := range []func(*testing.T, claudesim.Version, claudesim.Scenario) backend{playedClaude, realClaude} {
			live := newRepository(t)
			backend := start(t, version, claudesim.Play(
				claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("pwd"), claudesim.Conclude(asksFor(2))),
				claudesim.On(claudesim.Match{Model: "sonnet"},
					claudesim.Bash("pwd; echo 2 > limit && git commit --quiet --all --message raise && echo x > draft"), claudesim.Conclude(asksFor(3))),
				claudesim.On(claudesim.Match{Model: "opus"},
					claudesim.Bash("pwd; cat limit draft; rm draft; git status --short"), claudesim.Conclude(resolved()))))
			t.Run(simtest.Number(t, version)+"/"+backend.name, func(t *testing.T) {
				t.Parallel()
				s := startSite(t, temporalServer, environment(t, "", append(backend.environ, "CLAUDEOPS_WORK_DIR="+live)...))
				chain, err := s.finish(s.start(nil))
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
				require.Len(t, chain.Sessions, 3)
				second, third := chain.Sessions[1], chain.Sessions[2]
				require.Equal(t, []escalation.Continuity{"resume", "resume"}, []escalation.Continuity{second.Continuity, third.Continuity})
				require.Equal(t, second.Worktree.Path, third.Worktree.Path)
				require.Equal(t, []bool{true, false}, []bool{second.Worktree.New, third.Worktree.New})
				require.Equal(t, []bool{true, false}, []bool{second.Worktree.Changed, third.Worktree.Changed})
				require.Equal(t, []int{1, 1}, []int{second.Worktree.Commits, third.Worktree.Commits})
				require.Len(t, keptEvents(chain), 2)
				for _, session := range chain.Sessions {
					require.FileExists(t, conversationOf(s.cfg, session.SessionID))
				}
				requireUntouched(t, live)

				asked := backend.asked()
				last := asked[len(asked)-1]
				require.Len(t, last.Prompts(), 3, "the conversation of all tiers")
				require.NotContains(t, last.Prompts()[0], "Your worktree")
				require.Contains(t, last.Prompts()[1], "You work in a git worktree of your own, `"+second.Worktree.Path+"`, on the branch `"+second.Worktree.Branch+"`")
				require.Contains(t, last.Prompts()[1], "It is new")
				require.Contains(t, last.Prompts()[2], "It holds what the earlier sessions of this chain have left in it")
				said := slices.DeleteFunc(last.ToolResults(), func(result string) bool { return strings.Contains(result, "Structured output") })
				require.Contains(t, said[0], live)
				require.Contains(t, said[1], second.Worktree.Path)
				require.Equal(t, []string{second.Worktree.Path, "2", "x"}, strings.Fields(said[2]))
				requireRecorded(t, s, chain)
			})
		}
	}
}

// TestWorktreeAfterADrain stops the worker in the middle of a repair. The next worker continues the session in the same
// worktree, where the first process has left a file. The session then cleans up, and the worktree is removed.
func TestWorktreeAfterADrain(t *testing.T) {
	t.Parallel()
	temporalServer, live := startTemporal(t), newRepository(t)
	claude := simtest.Install(t, claudesim.Play(concluding("haiku", asksFor(2)),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "ended before its work was done"},
			claudesim.Bash("pwd; cat draft && rm draft"), claudesim.Conclude(resolved())),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash("echo begun > draft; sleep 300"))))
	environ := environment(t, claude, "CLAUDEOPS_WORK_DIR="+live, "CLAUDEOPS_DRAIN_TIMEOUT=1s")
	first := startSite(t, temporalServer, environ)
	run := first.start(nil)
	drafts := func() []string {
		found, err := filepath.Glob(filepath.Join(first.cfg.WorktreesDir(), "*", "draft"))
		require.NoError(t, err)
		return found
	}
	require.Eventually(t, func() bool { return len(drafts()) == 1 }, testTimeout, 50*time.Millisecond)
	path := filepath.Dir(drafts()[0])
	require.NoError(t, first.stop())
	require.FileExists(t, filepath.Join(path, "draft"), "nothing is removed that is not committed")

	second := startSite(t, temporalServer, environ)
	chain, err := second.finish(run)
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Len(t, chain.Sessions, 2)
	require.True(t, chain.Last().Interrupted)
	require.Equal(t, path, chain.Last().Worktree.Path)
	require.False(t, chain.Last().Worktree.Kept)
	require.NoDirExists(t, path)
	requests := simtest.Requests(t, claude)
	results := requests[len(requests)-1].ToolResults()
	require.Equal(t, []string{path, "begun"}, strings.Fields(results[len(results)-1]))
	require.Contains(t, requests[len(requests)-1].Prompt(), "Your worktree")
	requireUntouched(t, live)
	require.Equal(t, "main", gitIn(t, live, "branch", "--format=%(refname:short)"))
}

// TestSessionsRepairInTheScratchDirectoryAtOnce lets two chains repair in the default working directory at the same
// time. Each waits until both have begun.
func TestSessionsRepairInTheScratchDirectoryAtOnce(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	claude := simtest.Install(t, aboutEach(claudesim.On(claudesim.Match{Model: "sonnet"},
		claudesim.Bash(fmt.Sprintf("echo begin >> %[1]s; until [ $(wc -l < %[1]s) = 2 ]; do sleep 0.05; done", log)),
		claudesim.Conclude(resolved()))))
	s := startSite(t, startTemporal(t), environment(t, claude))
	for _, run := range s.startEach() {
		chain, err := s.finish(run)
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, chain.Reason)
	}
}

// TestSessionsRepairADirectoryInTurn lets two chains repair in one directory without worktrees, because it is in no
// repository or because worktrees are off. The second chain reports that it waits. It repairs when the first one has
// ended.
func TestSessionsRepairADirectoryInTurn(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for name, prepare := range map[string]func(t *testing.T) (dir, worktrees string){
		"no repository": func(t *testing.T) (string, string) { t.Helper(); return t.TempDir(), "auto" },
		"off":           func(t *testing.T) (string, string) { t.Helper(); return newRepository(t), "off" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, worktrees := prepare(t)
			notes := t.TempDir()
			log, finish := filepath.Join(notes, "log"), filepath.Join(notes, "finish")
			script := fmt.Sprintf("echo begin >> %[1]s; until [ -e %[2]s ]; do sleep 0.05; done; echo end >> %[1]s", log, finish)
			claude := simtest.Install(t, aboutEach(
				claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Bash(script), claudesim.Conclude(resolved()))))
			s := startSite(t, temporalServer, environment(t, claude, "CLAUDEOPS_WORK_DIR="+dir, "CLAUDEOPS_WORKTREES="+worktrees))
			runs := s.startEach()
			require.Eventually(t, func() bool {
				return slices.ContainsFunc(runs, func(run client.WorkflowRun) bool {
					return strings.HasSuffix(s.heartbeat(run.GetID()).Now.Waiting, " repairs in "+dir)
				})
			}, testTimeout, 50*time.Millisecond)
			require.Eventually(t, exists(log), testTimeout, 50*time.Millisecond)
			begun, err := os.ReadFile(log)
			require.NoError(t, err)
			require.Equal(t, "begin\n", string(begun))
			require.NoError(t, os.WriteFile(finish, nil, 0o600))
			for _, run := range runs {
				chain, err := s.finish(run)
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
				require.Nil(t, chain.Last().Worktree)
				require.Equal(t, 1, chain.Last().Attempts)
				require.Empty(t, keptEvents(chain))
			}
			ended, err := os.ReadFile(log)
			require.NoError(t, err)
			require.Equal(t, "begin\nend\nbegin\nend\n", string(ended))
		})
	}
}

// TestNoWorktreeNoCommit lets Tier 2 commit in a directory that can have no worktree, with required reviews. The guard
// refuses that and says why; so do the event, the gate and what people are told. The checked-out branch stays as it is.
func TestNoWorktreeNoCommit(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for name, c := range map[string]struct {
		git     []string
		setting string
		why     string
	}{
		"a foreign filter":         {git: []string{"config", "filter.evil.smudge", "cat"}, why: "sets filter.evil.smudge"},
		"a branch named claudeops": {git: []string{"branch", "claudeops"}, why: "refs/heads/claudeops' exists"},
		"off":                      {setting: "CLAUDEOPS_WORKTREES=off", why: "worktrees are off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := newComposeRepository(t)
			before := gitIn(t, live, "rev-parse", "HEAD")
			if c.git != nil {
				gitIn(t, live, c.git...)
			}
			claude := simtest.Install(t, claudesim.Play(concluding("haiku", asksFor(2)), claudesim.On(claudesim.Match{Model: "sonnet"},
				claudesim.Bash("sed -i s/8081/8080/ compose.yaml"),
				claudesim.Bash("git commit --quiet --all --message 'web: the right port'"), claudesim.Conclude(needsPerson()))))
			environ := environment(t, claude, "CLAUDEOPS_WORK_DIR="+live, "CLAUDEOPS_REVIEW_CHANGES=required", "CLAUDEOPS_GATE_TIMEOUT=72h")
			if c.setting != "" {
				environ = append(environ, c.setting)
			}
			s := startSite(t, temporalServer, environ)
			gate, chain := s.abortAtGate(s.start(nil))
			kept := keptEvents(chain)
			require.Len(t, kept, 1)
			require.Contains(t, kept[0], "the session had no worktree of "+live+" and could not commit: ")
			require.Contains(t, kept[0], c.why)
			require.Contains(t, strings.Join(gate.Tried, "\n"), c.why)
			for _, event := range chain.Events {
				if event.Kind == escalation.EventWorktreeKept {
					require.Equal(t, escalation.SeverityWarning, event.Severity)
				}
			}
			require.Empty(t, gate.Commit)
			require.Empty(t, chain.Reviews)
			requests := simtest.Requests(t, claude)
			require.Regexp(t, `this session has no worktree \(.*`+c.why, strings.Join(requests[len(requests)-1].ToolResults(), "\n"))
			require.Equal(t, before, gitIn(t, live, "rev-parse", "HEAD"))
			requireRecorded(t, s, chain)
		})
	}
}
