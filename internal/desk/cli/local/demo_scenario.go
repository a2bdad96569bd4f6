package local

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	processes "github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// demoService is a small service. The demo really breaks the service, and the agents really repair it. A restart does
// not help, because only a redeployment removes the stale lock file.
const demoService = `#!/bin/sh
case "$1" in
  status)   if [ -e "$2.lock" ]; then echo "HTTP 502 Bad Gateway"; else echo "HTTP 200 OK"; fi ;;
  logs)     echo "$2: library.db is locked by a process that is gone ($2.lock)" ;;
  restart)  echo "$2 restarted"; echo "$2: library.db is locked, giving up" ;;
  redeploy) rm -f "$2.lock" && echo "$2 redeployed" ;;
esac
`

// demoPolicy is the policy for the demo's agents. %q is the directory of the service's program.
const demoPolicy = `version: 1
directories: [%q, /usr/bin, /bin]
tiers:
  1: {read: [".", $TMPDIR], write: [$TMPDIR]}
  2: {read: [".", $TMPDIR], write: [$TMPDIR]}
  3: {read: [".", $TMPDIR], write: [$TMPDIR]}
programs:
  homelab:
    commands:
      status, logs: {tier: 1, args: SERVICE}
      restart: {tier: 2, args: SERVICE, action: restart}
      redeploy: {tier: 3, args: SERVICE, action: redeployment}
`

// demoThinking is the pause before each reply of the stand-in model. Heartbeats come every second. With a shorter
// pause, people could miss a tool call.
const demoThinking = 1500 * time.Millisecond

// demoSite holds the paths of the demo's service: the directory of its program, the policy, and the working directory
// with its lock file.
type demoSite struct{ bin, policy, work string }

func demoSiteIn(stateDir string) demoSite {
	return demoSite{
		bin: filepath.Join(stateDir, "bin"), policy: filepath.Join(stateDir, "policy.yaml"),
		work: filepath.Join(stateDir, "work"),
	}
}

// build creates the service and breaks it.
func (d demoSite) build() error {
	for _, dir := range []string{d.bin, d.work} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := processes.WriteProgram(filepath.Join(d.bin, "homelab"), []byte(demoService)); err != nil {
		return err
	}
	if err := os.WriteFile(d.policy, fmt.Appendf(nil, demoPolicy, d.bin), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.work, "jellyfin.lock"), nil, 0o600)
}

// demoEnvironment returns the environment of the demo. From the user's environment, it takes only PATH.
func demoEnvironment(stateDir, claude, path string) []string {
	site := demoSiteIn(stateDir)
	set := func(name, value string) string { return config.Prefix + name + "=" + value }
	return []string{
		"PATH=" + site.bin + string(filepath.ListSeparator) + path,
		"HOME=" + stateDir,
		"ANTHROPIC_API_KEY=demo",                                             // its agent calls no model
		set("AGENT_USER", "none"),                                            // its agent is a stand-in
		set("STATE_DIR", stateDir), set("TRANSCRIPTS", config.NoTranscripts), // a demo leaves no data behind
		set("CLAUDE", claude), set("WORK_DIR", site.work), set("POLICY_FILE", site.policy),
		set("TIER1_TOOLS", "Bash"), set("TIER2_TOOLS", "Bash"), set("TIER3_TOOLS", "Bash"),
	}
}

// demoScenario returns the replies of the stand-in model at each tier.
func demoScenario() claudesim.Scenario {
	check := func(status escalation.CheckStatus, problem string) []escalation.CheckResult {
		return []escalation.CheckResult{{Service: "jellyfin", CheckType: "http", Status: status, Error: problem}}
	}
	think := func(input, output int, reply claudesim.Reply) claudesim.Reply {
		return reply.Using(claudesim.Usage{Input: input, Output: output}).After(demoThinking)
	}
	return claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"},
			think(6_000, 300, claudesim.Bash("homelab status jellyfin").Saying("Checking the services.")),
			think(7_000, 300, claudesim.Bash("homelab logs jellyfin")),
			think(8_000, 600, claudesim.Conclude(escalation.Verdict{
				Status:   escalation.VerdictEscalate,
				Summary:  "jellyfin answers 502; its log says that its library is locked",
				Services: []string{"jellyfin"}, RecommendedTier: escalation.TierSafeRepair,
				Checks: check(escalation.CheckDown, "HTTP 502 Bad Gateway"),
			})),
		).Named("observe"),
		claudesim.On(claudesim.Match{Model: "sonnet"},
			think(12_000, 900, claudesim.Bash("homelab restart jellyfin").Saying("A restart is safe to try.")),
			think(13_000, 900, claudesim.Bash("homelab status jellyfin")),
			think(14_000, 1_500, claudesim.Conclude(escalation.Verdict{
				Status:   escalation.VerdictEscalate,
				Summary:  "a restart did not help: a lock of a process that is gone is left behind",
				Services: []string{"jellyfin"}, RecommendedTier: escalation.TierFullRepair,
				Checks:      check(escalation.CheckDown, "HTTP 502 Bad Gateway"),
				Findings:    "jellyfin.lock outlived the process that made it",
				Remediation: "restarted jellyfin once, still 502",
				Actions:     []escalation.Action{{Kind: escalation.ActionRestart, Service: "jellyfin"}},
			})),
		).Named("repair safely"),
		claudesim.On(claudesim.Match{Model: "opus"},
			think(18_000, 1_200, claudesim.Bash("homelab redeploy jellyfin").Saying("The lock goes away with a "+
				"redeployment.")),
			think(19_000, 1_200, claudesim.Bash("homelab status jellyfin")),
			think(20_000, 2_000, claudesim.Conclude(escalation.Verdict{
				Status:   escalation.VerdictResolved,
				Summary:  "redeployed jellyfin, which cleared the lock; it answers 200",
				Services: []string{"jellyfin"}, Checks: check(escalation.CheckHealthy, ""),
				Actions: []escalation.Action{{
					Kind: escalation.ActionRedeployment, Service: "jellyfin",
					Succeeded: true,
				}},
			})),
		).Named("repair fully"),
	)
}
