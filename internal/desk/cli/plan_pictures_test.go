package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// nightRepository returns a repository with checks and with two plans, for the pictures.
func nightRepository(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "infra")
	require.NoError(t, os.Mkdir(dir, 0o750))
	for name, text := range map[string]string{
		"compose.yaml":    "services:\n  proxy:\n    ports: [\"8080:80\"]\n",
		"firewall.rules":  "deny from any\n",
		review.ChecksFile: "grep -q ports compose.yaml\n",
		"ports.md": "# Move the proxy\n\n## Phase 1: The port\n- [ ] compose.yaml publishes 8443\n\n" +
			"## Phase 2: The rule of the firewall\n- [ ] the rule allows 8443\n\n## Phase 3: The old port\n- [ ] 8080 is closed\n",
		"disks.md": "# Replace the disks\n\n## Phase 5: The pool\n- [ ] the pool has a mirror\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, words := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "--message", "the plans"},
	} {
		said, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, words...)...).CombinedOutput()
		require.NoError(t, err, "%v: %s", words, said)
	}
	return dir
}

// nightPolicy returns the path of a policy in which authors may change the files of the pictures without a person.
func nightPolicy(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	const tier = "{anything: true, review: {paths: ['compose.yaml', 'firewall.rules', '*.md']}}"
	text := "version: 1\ntiers: {1: {anything: true}, 2: " + tier + ", 3: " + tier + "}\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// nightPlans plays the authors and the reviewers of the pictures. The second phase of ports.md needs a person, the
// author of disks.md does not end, and the reviewer of a repair finds something.
func nightPlans() []claudesim.Turn {
	used := claudesim.Usage{Input: 9_000, Output: 700, CacheRead: 21_000, CacheCreation: 4_000}
	const commit = " && git add --all && git -c user.name=agent -c user.email=agent@example.org commit --quiet --message "
	author := func(phase, command string) claudesim.Turn {
		return claudesim.On(claudesim.Match{First: "You are the author", Prompt: "Carry out phase `" + phase + "`"}, claudesim.Bash(command).Using(used),
			claudesim.Conclude(review.Work{Status: review.WorkComplete, Summary: "What phase " + phase + " asks for is committed."}).Using(used))
	}
	reviewer := func(prompt string, status review.Status, summary string, findings ...review.Finding) claudesim.Turn {
		return claudesim.On(claudesim.Match{First: "You review a change", Prompt: prompt},
			claudesim.Conclude(review.Verdict{Status: status, Summary: summary, Findings: append([]review.Finding{}, findings...)}).Using(used))
	}
	return []claudesim.Turn{
		author("1", "sed -i s/8080/8443/ compose.yaml && sed -i '0,/\\[ \\]/s//[x]/' ports.md"+commit+"'proxy: port 8443'"),
		author("2", "echo 'allow 8443 from any' >>firewall.rules && sed -i '0,/\\[ \\]/s//[x]/' ports.md"+commit+"'firewall: allow 8443'"),
		author("5", "sleep 300; echo 'zpool status'"),
		reviewer("carries out phase `1`", review.Ready, "The port is 8443, as the plan says."),
		reviewer("carries out phase `2`", review.NotReady, "The rule is wider than the plan asks for.", review.Finding{
			Fingerprint: "open-door", Priority: review.P1, Action: review.HumanRequired, File: "firewall.rules", Line: 2,
			Text: "the rule lets everybody in; the plan does not say who may connect",
		}),
		reviewer("nextcloud", review.NotReady, "The limit is lower than what nextcloud uses.", review.Finding{
			Fingerprint: "low-limit", Priority: review.P1, Action: review.AutoFix, File: "compose.yaml", Line: 4, Text: "nextcloud uses 900 MB at night",
		}),
		reviewer("", review.Ready, "The plan can be carried out."),
		claudesim.On(claudesim.Match{Model: "haiku", First: "Look at nextcloud"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictEscalate, Summary: "nextcloud uses all memory of its host", Services: []string{"nextcloud"}, Kind: "memory", RecommendedTier: 2,
		}).Using(used)),
		claudesim.On(claudesim.Match{Model: "sonnet", First: "Look at nextcloud"}, claudesim.Bash("echo '    mem_limit: 512m' >>compose.yaml"+commit+"'a limit'").Using(used),
			claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictResolved, Summary: "nextcloud has a limit of its memory", Services: []string{"nextcloud"}, Kind: "memory"}).Using(used)),
	}
}

// startNightPlans starts the plans and the repair of nightPlans, and waits until each is where the pictures show it.
func startNightPlans(t *testing.T, environ []string, must func(...string)) {
	t.Helper()
	must("plan", "review", "disks.md", "--repository", "infra", "--id", "plan-review-disks", "--wait")
	must("plan", "run", "ports.md", "--repository", "infra", "--id", "plan-run-ports", "--actor", "grace")
	must("run", "--id", "nextcloud-2230", "--service", "nextcloud", "--prompt", "Look at nextcloud", "--repository", "infra", "--wait")
	must("plan", "run", "disks.md", "--repository", "infra", "--id", "plan-run-disks", "--actor", "grace")
	require.Eventually(t, func() bool {
		return strings.Contains(starter(t, environ, "gate").Stdout, "phase 2 of ports.md") &&
			strings.Contains(starter(t, environ, "chain", "plan-run-disks").Stdout, "running")
	}, clitest.Timeout, clitest.Look)
}
