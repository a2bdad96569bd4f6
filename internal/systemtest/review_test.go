package systemtest

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// newComposeRepository makes a repository with a compose file whose port is wrong, and a check of it. The commands
// checks run in front of it.
func newComposeRepository(t *testing.T, checks ...string) string {
	t.Helper()
	live := newRepository(t)
	for name, content := range map[string]string{
		"compose.yaml":    "services:\n  web:\n    image: nginx\n    ports: [\"8081:80\"]\n",
		review.ChecksFile: "# what every change must pass\n" + strings.Join(append(checks, "grep -n 8080 compose.yaml\n"), "\n"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(live, name), []byte(content), 0o600))
	}
	gitIn(t, live, "add", "--all")
	gitIn(t, live, "commit", "--quiet", "--amend", "--message", "first")
	return live
}

// heldCheck is a check that runs until it is released. It reads a file beside the repository's objects, because a check
// sees no other files of a test and can write none.
type heldCheck struct{ name string }

func newHeldCheck() heldCheck { return heldCheck{"held-" + rand.Text()} }

// command is the line for the list of checks.
func (h heldCheck) command() string {
	return `while [ -e "$(git rev-parse --git-common-dir)/` + h.name + `" ]; do sleep 0.05; done`
}

// hold makes the check wait, and the returned function releases it.
func (h heldCheck) hold(t *testing.T, live string) (release func()) {
	t.Helper()
	file := filepath.Join(live, ".git", h.name)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	return func() { require.NoError(t, os.Remove(file)) }
}

// runs reports whether the check runs on this host now.
func (h heldCheck) runs() bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(lines, func(file string) bool {
		line, _ := os.ReadFile(file) // the process may have ended
		return bytes.Contains(line, []byte(h.name))
	})
}

// pathWithDocker returns the PATH of a test with a docker that prints its arguments, and the key that it can see.
func pathWithDocker(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"rendered $* with key ${ANTHROPIC_API_KEY:-none}\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o700))
	return "PATH=" + dir + ":" + os.Getenv("PATH")
}

// sandboxed returns the environment of a backend, with the sandbox for the real CLI. The stand-in writes outside of it.
func sandboxed(of backend) []string {
	if of.name == "played" {
		return of.environ
	}
	return append(slices.Clip(of.environ), "CLAUDEOPS_SANDBOX=auto")
}

// corrects is a turn of Tier 2 that corrects the port and commits.
func corrects(more string) claudesim.Turn {
	return claudesim.On(claudesim.Match{Model: "sonnet"},
		claudesim.Bash("sed -i s/8081/8080/ compose.yaml"+more+" && git add --all && git commit --quiet --message 'web: the right port'"),
		claudesim.Conclude(resolved()))
}

// reviews is a turn of a reviewer.
func reviews(verdict review.Verdict) claudesim.Turn {
	return claudesim.On(claudesim.Match{First: "You review a change"}, claudesim.Conclude(verdict))
}

// corrected says that the only open finding is corrected.
var corrected = review.Verdict{
	Status: review.Ready, Summary: "it is corrected", Answers: []review.Answer{{Number: 1, Now: review.Fixed}}, Findings: []review.Finding{},
}

var ready = review.Verdict{Status: review.Ready, Summary: "the port is that of the proxy", Findings: []review.Finding{}}

// TestReviewedChange lets a chain repair a compose file with a wrong port. A second session reviews the commit, and
// people see the verdict.
func TestReviewedChange(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for _, version := range simtest.NewestVersions(t) {
		for _, start := range []func(*testing.T, claudesim.Version, claudesim.Scenario) backend{playedClaude, realClaude} {
			live := newComposeRepository(t)
			backend := start(t, version, claudesim.Play(concluding("haiku", asksFor(2)), reviews(ready), corrects("")))
			t.Run(simtest.Number(t, version)+"/"+backend.name, func(t *testing.T) {
				t.Parallel()
				s := startSite(t, temporalServer, environment(t, "", append(sandboxed(backend), "CLAUDEOPS_WORK_DIR="+live,
					"CLAUDEOPS_REVIEW_CHANGES=advisory", pathWithDocker(t))...))
				run := s.start(nil)
				chain, err := s.finish(run)
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
				require.Len(t, chain.Sessions, 3)
				author, reviewer := chain.Sessions[1], chain.Sessions[2]
				require.Equal(t, []any{escalation.PurposeReview, escalation.TierObserve, escalation.ContinuityFresh, escalation.ReasonIndependent},
					[]any{reviewer.Purpose, reviewer.Tier, reviewer.Continuity, reviewer.ContinuityReason})
				require.Equal(t, escalation.VerdictStatus("ready"), reviewer.Verdict.Status)
				require.Positive(t, reviewer.CostUSD)
				require.Equal(t, 2, int(chain.Tier()))
				commit := gitIn(t, live, "rev-parse", author.Worktree.Branch)
				require.Equal(t, []escalation.Review{{
					AuthorID: author.SessionID, ReviewerID: reviewer.SessionID, Branch: author.Worktree.Branch,
					Base: gitIn(t, live, "rev-parse", "HEAD"), Commit: commit, Files: 1, Lines: 2, Checks: "passed", Status: "ready",
					Rule: "reviewed", Reason: "the reviewer approves " + commit[:12], Approved: true,
				}}, chain.Reviews)
				require.Contains(t, reviewEvents(chain)[0], "is approved: ")
				requireUntouched(t, live)
				requireRecorded(t, s, chain)
				if backend.name == "played" {
					recordHistory(t, s, run, "reviewed")
				}

				asked := backend.asked()
				prompt := asked[len(asked)-1].Prompts()
				require.Len(t, prompt, 1, "the reviewer begins without the conversation of the author")
				for _, part := range []string{
					commit, `+    ports: ["8080:80"]`, `-    ports: ["8081:80"]`, "It has 2 changed lines in 1 file.", "$ grep -n 8080 compose.yaml",
					asksFor(2).Summary, "rendered compose -f ./compose.yaml config with key none",
				} {
					require.Contains(t, prompt[0], part)
				}
				require.NotContains(t, prompt[0], resolved().Summary, "the reviewer does not see what the author says")
			})
		}
	}
}

// TestPreviewsOfAChange has a change reviewed that several programs can preview. Only those run that are prepared:
// terraform has been initialized in one directory of the shared checkout, and in the other there is a link to a
// directory outside of it.
func TestPreviewsOfAChange(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	programs := t.TempDir()
	for name, script := range map[string]string{
		"kubectl":          `echo "-  port: 80"; echo "+  port: 8080"; exit 1`,
		"terraform":        `cat "$TF_DATA_DIR/providers" && echo "planned $*" && exit 2`,
		"ansible-playbook": `echo "played $*"`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	makes := claudesim.On(claudesim.Match{Model: "opus"}, claudesim.Bash(
		"mkdir k8s net dns && printf 'apiVersion: v1\\nkind: Service\\n' > k8s/web.yaml && echo '- hosts: all' > site.yml"+
			" && touch net/main.tf dns/main.tf && git add --all && git commit --quiet --message 'web: the right port'"),
		claudesim.Conclude(resolved()))
	for _, version := range simtest.NewestVersions(t) {
		for _, start := range []func(*testing.T, claudesim.Version, claudesim.Scenario) backend{playedClaude, realClaude} {
			live := newRepository(t)
			for _, dir := range []string{"net", "dns"} {
				require.NoError(t, os.Mkdir(filepath.Join(live, dir), 0o700))
			}
			require.NoError(t, os.Mkdir(filepath.Join(live, "net", ".terraform"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(live, "net", ".terraform", "providers"), []byte("the provider of acme\n"), 0o600))
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(live, "dns", ".terraform")))
			backend := start(t, version, claudesim.Play(concluding("haiku", asksFor(3)), reviews(ready), makes))
			t.Run(simtest.Number(t, version)+"/"+backend.name, func(t *testing.T) {
				t.Parallel()
				s := startSite(t, temporalServer, environment(t, "", append(sandboxed(backend), "CLAUDEOPS_WORK_DIR="+live,
					"CLAUDEOPS_REVIEW_CHANGES=advisory", "PATH="+programs+":"+os.Getenv("PATH"))...))
				chain, err := s.finish(s.start(nil))
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
				require.Len(t, chain.Sessions, 3, "%+v", chain.Reviews)
				asked := backend.asked()
				prompt := strings.Join(asked[len(asked)-1].Prompts(), "\n")
				for _, part := range []string{
					"kubectl diff -f ./k8s/web.yaml", "-  port: 80\n+  port: 8080\n", "\nplayed --check --diff ./site.yml\n",
					"the provider of acme\nplanned -chdir=net plan -input=false -no-color -lock=false\n\nexit code 2",
				} {
					require.Contains(t, prompt, part)
				}
				require.NotContains(t, prompt, "-chdir=dns")
				require.Equal(t, 1, strings.Count(prompt, "exit code"), "a difference is no error of kubectl")
			})
		}
	}
}

// reviewEvents returns the messages of the events about reviews.
func reviewEvents(chain escalation.Chain) (messages []string) {
	for _, event := range chain.Events {
		if event.Kind == escalation.EventReview {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

// TestReviewThatIsNotReady lets a reviewer object, or not come to a verdict. The chain ends as its author concludes,
// and says so.
func TestReviewThatIsNotReady(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	objection := review.Finding{
		Fingerprint: "wrong-port", Priority: review.P0, Action: review.AutoFix, File: "compose.yaml", Line: 4, Text: "the proxy asks for 80",
	}
	for name, c := range map[string]struct {
		more   string // of the author's command
		review claudesim.Turn
		rule   review.Rule
		says   string
		ran    bool
	}{
		"P0": {
			"", reviews(review.Verdict{Status: review.Ready, Summary: "fine", Findings: []review.Finding{objection}}),
			review.RuleLimit, "the proxy asks for 80", true,
		},
		"a link": {"; ln -s /etc users", reviews(ready), review.RuleForPerson, `cannot read all of it as it is: users (a link or a submodule)`, true},
		"no verdict": {
			"", claudesim.On(claudesim.Match{First: "You review a change"}, claudesim.Say("fine"), claudesim.Say("fine")),
			review.RuleNotReviewed, "the change is not reviewed", true,
		},
		"the checks fail": {"; sed -i s/8080/80/ compose.yaml", reviews(ready), review.RuleCheckFailed, "the checks have failed", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := newComposeRepository(t)
			claude := simtest.Install(t, claudesim.Play(concluding("haiku", asksFor(2)), c.review, corrects(c.more)))
			s := startSite(t, temporalServer, environment(t, claude, "CLAUDEOPS_WORK_DIR="+live, "CLAUDEOPS_REVIEW_CHANGES=advisory"))
			chain, err := s.finish(s.start(nil))
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			require.Len(t, chain.Reviews, 1)
			done := chain.Reviews[0]
			require.Equal(t, string(c.rule), done.Rule, done.Reason)
			require.False(t, done.Approved)
			require.Contains(t, strings.Join(reviewEvents(chain), "\n"), c.says)
			require.Equal(t, c.ran, chain.Last().Purpose == escalation.PurposeReview)
			requireRecorded(t, s, chain)
		})
	}
}

// newRemoteRepository is like newComposeRepository, with a remote.
func newRemoteRepository(t *testing.T, checks ...string) (live, remote string) {
	t.Helper()
	live, remote = newComposeRepository(t, checks...), filepath.Join(t.TempDir(), "remote.git")
	gitIn(t, live, "init", "--quiet", "--bare", remote)
	gitIn(t, live, "remote", "add", "origin", remote)
	gitIn(t, live, "push", "--quiet", "origin", "main")
	return live, remote
}

// pushedTo lists the commits and names of the branches of chains in a remote.
func pushedTo(t *testing.T, remote string) string {
	t.Helper()
	return gitIn(t, remote, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/claudeops")
}

// correctedOnce returns the turns of an author that leaves a comment in its change, tries to push, and corrects what
// the reviewer finds.
func correctedOnce() claudesim.Scenario {
	left := review.Finding{
		Fingerprint: "left-over", Priority: review.P1, Action: review.AutoFix, File: "compose.yaml", Line: 5, Text: "a comment is left",
	}
	sonnet := func(prompt string, replies ...claudesim.Reply) claudesim.Turn {
		return claudesim.On(claudesim.Match{Model: "sonnet", Prompt: prompt}, append(replies, claudesim.Conclude(resolved()))...)
	}
	return claudesim.Play(
		concluding("haiku", asksFor(2)),
		claudesim.On(claudesim.Match{First: "You review a change", Prompt: startedAgain}, claudesim.Conclude(ready)),
		claudesim.On(claudesim.Match{First: "You review a change", Prompt: "## The second review"}, claudesim.Conclude(corrected)),
		reviews(review.Verdict{Status: review.NotReady, Summary: "a comment is left", Findings: []review.Finding{left}}),
		sonnet("## Correction", claudesim.Bash("sed -i /debug/d compose.yaml && git commit --quiet --all --message 'web: no comment'")),
		sonnet(startedAgain, claudesim.Bash("git status --short")),
		sonnet("",
			claudesim.Bash("sed -i s/8081/8080/ compose.yaml; echo '# debug' >> compose.yaml; git commit --quiet --all --message 'web: the right port'"),
			claudesim.Bash("git push origin HEAD")))
}

// TestFaultReviewKilledAt kills the worker at each state of a loop. The next worker continues at this state: no commit
// is made twice or lost, and the approved one is pushed.
func TestFaultReviewKilledAt(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, p := range map[string]point{
		"before_the_review":      before("RunReview", 1),
		"before_the_correction":  before("RunTier", 3),
		"after_the_closing_look": after("RunReview", 2),
		"before_the_push":        before("PushChange", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, remote := newRemoteRepository(t)
			environ := environment(t, simtest.Install(t, correctedOnce()), "CLAUDEOPS_WORK_DIR="+live, "CLAUDEOPS_REVIEW_CHANGES=required",
				"CLAUDEOPS_TASK_QUEUE="+name, "TEMPORAL_ADDRESS="+address)
			s := siteOf(t, c, environ)
			run := s.startAs("review-"+name, nil)
			s.startDying(p, environ)()
			startRole(t, "worker", nil, environ...)
			chain, err := s.finish(run)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			require.Len(t, chain.Sessions, 5)
			require.Len(t, chain.Reviews, 2)
			done := chain.Reviews[1]
			require.True(t, done.Approved, done.Reason)
			require.Equal(t, "1", gitIn(t, live, "rev-list", "--count", "HEAD.."+done.Branch), "one commit leaves")
			require.Equal(t, done.Commit+" refs/heads/"+done.Branch, pushedTo(t, remote))
			requireUntouched(t, live)
		})
	}
}

// TestFaultReviewKilledAtQuality kills the worker of a chain while the checks of its change run, or around the turn in
// which the author repairs what they have found. The next worker goes on there: the author has committed twice, and the
// second commit is pushed.
func TestFaultReviewKilledAtQuality(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	sonnet := func(prompt, command string) claudesim.Turn {
		return claudesim.On(claudesim.Match{Model: "sonnet", Prompt: prompt}, claudesim.Bash(command), claudesim.Conclude(resolved()))
	}
	scenario := claudesim.Play(
		concluding("haiku", asksFor(2)), reviews(ready),
		sonnet("The checks of the repository have failed", "sed -i s/8090/8080/ compose.yaml && git commit --quiet --all --message 'web: the right port'"),
		sonnet(startedAgain, "git status --short"),
		sonnet("", "sed -i s/8081/8090/ compose.yaml && git commit --quiet --all --message 'web: another port'"))
	for name, p := range map[string]point{
		"during_quality": {}, "before_quality_retry": before("RunTier", 3), "after_quality_retry": after("RunTier", 3),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := newHeldCheck()
			live, remote := newRemoteRepository(t, check.command())
			environ := environment(t, simtest.Install(t, scenario), "CLAUDEOPS_WORK_DIR="+live, "CLAUDEOPS_REVIEW_CHANGES=required",
				"TEMPORAL_ADDRESS="+address)
			s := siteOf(t, c, environ)
			var run client.WorkflowRun
			if p != (point{}) {
				run = s.startAs("quality-"+name, nil)
				s.startDying(p, environ)()
			} else {
				release := check.hold(t, live)
				run = s.startAs("quality-"+name, nil)
				first := startRole(t, "worker", nil, environ...)
				require.Eventually(t, check.runs, testTimeout, 20*time.Millisecond)
				first.kill(t)
				release()
			}
			startRole(t, "worker", nil, environ...)
			chain, err := s.finish(run)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			require.Equal(t, []escalation.Purpose{
				escalation.PurposeTier, escalation.PurposeTier, escalation.PurposeContinuation, escalation.PurposeReview,
			}, purposes(chain))
			done := chain.Reviews[len(chain.Reviews)-1]
			require.Equal(t, []string{string(review.RuleCheckFailed), string(review.RuleReviewed)}, []string{chain.Reviews[0].Rule, done.Rule})
			require.Equal(t, "web: another port", gitIn(t, live, "log", "--format=%s", "HEAD.."+done.Branch))
			require.Equal(t, done.Commit+" refs/heads/"+done.Branch,
				pushedTo(t, remote))
			requireUntouched(t, live)
		})
	}
}

// TestFaultReviewHostLost deletes the host of an author before it corrects its change, or before the change is pushed.
// Another host, with a clone of its own, goes on with what the author has committed.
func TestFaultReviewHostLost(t *testing.T) {
	t.Parallel()
	c, address := startTemporalAt(t)
	for name, p := range map[string]point{"before_the_correction": before("RunTier", 3), "before_the_push": before("PushChange", 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, remote := newRemoteRepository(t)
			elsewhere, leaves := filepath.Join(t.TempDir(), "clone"), filepath.Join(t.TempDir(), "leaves")
			gitIn(t, filepath.Dir(elsewhere), "clone", "--quiet", "--branch", "main", remote, elsewhere)
			settings := []string{"CLAUDEOPS_TASK_QUEUE=lost-review-" + name, "CLAUDEOPS_REVIEW_CHANGES=required"}
			here := newHost(t, simtest.Install(t, correctedOnce()), "file://"+t.TempDir())
			first := startSite(t, connect(t, address, leaving(p, leaves)), here.environ(t, append(settings, "CLAUDEOPS_WORK_DIR="+live)...))
			run := first.startAs("lost-review-"+name, nil)
			require.Eventually(t, exists(leaves), testTimeout, 20*time.Millisecond)
			require.NoError(t, first.stop())
			loseHost(t, here.home)
			require.NoError(t, os.RemoveAll(live))

			environ := here.another(t).environ(t, append(settings, "CLAUDEOPS_WORK_DIR="+elsewhere)...)
			startWorker(t, environ, address)
			chain, err := siteOf(t, c, environ).finish(run)
			require.NoError(t, err)
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			require.Len(t, chain.Sessions, 5)
			done := chain.Reviews[1]
			require.True(t, done.Approved, done.Reason)
			require.Equal(t, "web: the right port", gitIn(t, remote, "log", "--format=%s", "main.."+done.Branch))
			require.Equal(t, done.Commit, gitIn(t, remote, "rev-parse", done.Branch))
			require.Equal(t, name == "before_the_correction", chain.Sessions[1].Host != chain.Sessions[3].Host)
		})
	}
}

// startDying starts a worker that kills itself at p. The result waits for that.
func (s *site) startDying(p point, environ []string) (wait func()) {
	s.t.Helper()
	once := filepath.Join(s.t.TempDir(), "once")
	require.NoError(s.t, os.WriteFile(once, nil, 0o600))
	worker := startRole(s.t, "worker", nil, append(slices.Clip(environ), pointVariable+"="+p.String(), onceVariable+"="+once)...)
	return func() {
		require.Error(s.t, worker.Wait(), "it kills itself")
		require.NoFileExists(s.t, once)
	}
}

// purposes lists the purposes of a chain's sessions.
func purposes(chain escalation.Chain) (all []escalation.Purpose) {
	for _, session := range chain.Sessions {
		all = append(all, session.Purpose)
	}
	return all
}

// TestRequiredReview lets an author correct what the reviewer finds. The author cannot push. The supervisor pushes the
// approved commit, and nothing else.
func TestRequiredReview(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for _, version := range simtest.NewestVersions(t) {
		for _, start := range []func(*testing.T, claudesim.Version, claudesim.Scenario) backend{playedClaude, realClaude} {
			live, remote := newRemoteRepository(t)
			backend := start(t, version, correctedOnce())
			t.Run(simtest.Number(t, version)+"/"+backend.name, func(t *testing.T) {
				t.Parallel()
				s := startSite(t, temporalServer, environment(t, "", append(sandboxed(backend), "CLAUDEOPS_WORK_DIR="+live,
					"CLAUDEOPS_REVIEW_CHANGES=required")...))
				run := s.start(nil)
				chain, err := s.finish(run)
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
				require.Len(t, chain.Sessions, 5)
				require.Len(t, chain.Reviews, 2)
				require.Equal(t, []string{string(review.RuleCorrections), string(review.RuleReviewed)},
					[]string{chain.Reviews[0].Rule, chain.Reviews[1].Rule})
				done := chain.Reviews[1]
				require.Equal(t, []any{true, remote, gitIn(t, live, "rev-parse", done.Branch)}, []any{done.Approved, done.Pushed, done.Commit})
				require.Equal(t, done.Commit+" refs/heads/"+done.Branch, pushedTo(t, remote))
				require.NotContains(t, gitIn(t, live, "show", done.Commit+":compose.yaml"), "debug")
				requireUntouched(t, live)
				requireRecorded(t, s, chain)
				if backend.name == "played" {
					recordHistory(t, s, run, "review_required")
				}

				var said []string
				for _, request := range backend.asked() {
					said = append(said, request.ToolResults()...)
				}
				require.Contains(t, strings.Join(said, "\n"), "the supervisor pushes what a review has approved")
			})
		}
	}
}

// TestRequiredReviewWithoutARemote does the same in a repository without a remote: the approved commit stays on its
// branch.
func TestRequiredReviewWithoutARemote(t *testing.T) {
	t.Parallel()
	temporalServer, live := startTemporal(t), newComposeRepository(t)
	played := playedClaude(t, simtest.NewestVersions(t)[0], correctedOnce())
	s := startSite(t, temporalServer, environment(t, "", append(played.environ, "CLAUDEOPS_WORK_DIR="+live, "CLAUDEOPS_REVIEW_CHANGES=required")...))
	chain, err := s.finish(s.start(nil))
	require.NoError(t, err)
	require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
	require.Empty(t, chain.Gates)
	done := chain.Reviews[1]
	require.Equal(t, []any{true, "", gitIn(t, live, "rev-parse", done.Branch)}, []any{done.Approved, done.Pushed, done.Commit})
	require.Contains(t, strings.Join(reviewEvents(chain), "\n"), "is approved and stays on "+done.Branch+": the repository has no remote origin")
	requireUntouched(t, live)
	requireRecorded(t, s, chain)
}

// TestReviewerThatAlwaysObjects has a reviewer that is never content. The third time a person is asked; nothing is
// pushed, and no session has spent more than its budget.
func TestReviewerThatAlwaysObjects(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	objection := review.Finding{
		Fingerprint: "taste", Priority: review.P1, Action: review.AutoFix, File: "compose.yaml", Line: 4, Text: "it could be nicer",
	}
	for _, version := range simtest.NewestVersions(t) {
		for _, start := range []func(*testing.T, claudesim.Version, claudesim.Scenario) backend{playedClaude, realClaude} {
			live, remote := newRemoteRepository(t)
			backend := start(t, version, claudesim.Play(
				concluding("haiku", asksFor(2)),
				claudesim.On(claudesim.Match{First: "You review a change", Prompt: "## The second review"}, claudesim.Conclude(review.Verdict{
					Status: review.NotReady, Summary: "still not", Findings: []review.Finding{},
					Answers: []review.Answer{{Number: 1, Now: review.StillThere, Note: "line 4"}},
				})),
				reviews(review.Verdict{Status: review.NotReady, Summary: "no", Findings: []review.Finding{objection}}),
				claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "## Correction"},
					claudesim.Bash("echo '# nicer' >> compose.yaml && git commit --quiet --all --message 'web: nicer'"), claudesim.Conclude(resolved())),
				corrects("")))
			t.Run(simtest.Number(t, version)+"/"+backend.name, func(t *testing.T) {
				t.Parallel()
				s := startSite(t, temporalServer, environment(t, "", append(sandboxed(backend), "CLAUDEOPS_WORK_DIR="+live,
					"CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_REVIEW_CHANGES=required", "CLAUDEOPS_REVIEW_MAX_FIXES=9",
					"CLAUDEOPS_CHAIN_BUDGET_USD=5", "CLAUDEOPS_REVIEWER_BUDGET_USD=0.5")...))
				gate, chain := s.abortAtGate(s.start(nil))
				require.Contains(t, gate.Reason, "after 3 reviews it is still there")
				require.Len(t, chain.Sessions, 1+3+3)
				require.Equal(t, string(review.RuleRepeated), chain.Reviews[2].Rule)
				require.Equal(t, []int{1, 0}, []int{chain.Reviewed.Found, chain.Reviewed.Fixed})
				for _, session := range chain.Sessions {
					require.LessOrEqual(t, session.CostUSD, session.BudgetUSD)
				}
				require.Less(t, chain.CostUSD, 5.0)
				require.Empty(t, pushedTo(t, remote))
				requireRecorded(t, s, chain)
			})
		}
	}
}

// TestContinuedReview lets a reviewer run out of money. Another worker then continues its conversation, because a
// person chose so: the commit that the first worker's author has made is approved and pushed.
func TestContinuedReview(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for _, version := range simtest.NewestVersions(t) {
		for _, start := range []func(*testing.T, claudesim.Version, claudesim.Scenario) backend{playedClaude, realClaude} {
			live, remote := newRemoteRepository(t)
			look := claudesim.Bash("git log --oneline -1")
			backend := start(t, version, claudesim.Play(
				concluding("haiku", asksFor(2)),
				claudesim.On(claudesim.Match{First: "You review a change", Prompt: "Continue this review"}, claudesim.Conclude(ready)),
				claudesim.On(claudesim.Match{First: "You review a change"}, look, look, look, look, look, claudesim.Conclude(ready)),
				corrects("")))
			t.Run(simtest.Number(t, version)+"/"+backend.name, func(t *testing.T) {
				t.Parallel()
				environ := environment(t, "", append(sandboxed(backend), "CLAUDEOPS_WORK_DIR="+live, "CLAUDEOPS_GATE_TIMEOUT=72h",
					"CLAUDEOPS_REVIEW_CHANGES=required", "CLAUDEOPS_REVIEWER_BUDGET_USD=0.0001")...)
				first := startSite(t, temporalServer, environ)
				id := "continued-review-" + simtest.Number(t, version) + "-" + backend.name
				run := first.startAs(id, nil)
				gate := first.awaitGate(id, "gate-1")
				require.NotNil(t, gate.Continuation, "%s: %s", gate.Reason, gate.NoContinuation)
				require.Equal(t, []any{"reviewer", "review", escalation.SessionBudgetExhausted},
					[]any{gate.Continuation.Role, gate.Continuation.Resume, gate.Continuation.Status})
				require.NoError(t, first.stop())

				second := startSite(t, temporalServer, append(environ, "CLAUDEOPS_REVIEWER_BUDGET_USD=1"))
				resolution, err := second.resolve(id, escalation.GateAnswer{
					GateID: gate.ID, Action: escalation.GateContinue, Actor: "anna", Guidance: "the log is not needed",
				})
				require.NoError(t, err)
				require.Equal(t, "the reviewer goes on and keeps what it knows under the "+
					"CLAUDEOPS_REVIEWER_BUDGET_USD that is set then, with the guidance", resolution.Next)
				chain, err := second.finish(run)
				require.NoError(t, err)
				require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
				require.Len(t, chain.Sessions, 4, "nobody repairs again")
				interrupted, again := chain.Sessions[2], chain.Sessions[3]
				require.Equal(t, []any{interrupted.ID, escalation.PurposeReview, escalation.ReasonContinued},
					[]any{again.ParentID, again.Purpose, again.ContinuityReason})
				require.Equal(t, chain.Reviews[len(chain.Reviews)-1].Commit, strings.Fields(pushedTo(t, remote))[0])
				requireRecorded(t, second, chain)
			})
		}
	}
}
