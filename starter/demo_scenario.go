package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	processes "github.com/claudeops/claudeops/internal/process"
)

// demoService is a service of a few lines that is really broken and really repaired: a
// restart does not help it, because a lock is left behind that only a redeployment clears.
const demoService = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
case "$1" in
  status)   if [ -e library.lock ]; then echo "HTTP 502 Bad Gateway"; else echo "HTTP 200 OK"; fi ;;
  logs)     echo "jellyfin: library.db is locked by a process that is gone (library.lock)" ;;
  restart)  echo "jellyfin restarted"; echo "jellyfin: library.db is locked, giving up" ;;
  redeploy) rm -f library.lock && echo "jellyfin redeployed" ;;
esac
`

// demoThinking is how long the stand-in model thinks: long enough to be watched. What an agent does is
// told once a second, so a tool call shall not be over sooner.
const demoThinking = 1500 * time.Millisecond

// buildDemoService puts the broken service into dir.
func buildDemoService(dir string) error {
	if err := processes.WriteProgram(filepath.Join(dir, "jellyfin"), []byte(demoService)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "library.lock"), nil, 0o600)
}

// demoEnvironment is the configuration of the demo: nothing of the user's own but PATH.
func demoEnvironment(stateDir, claude, path string) []string {
	const (
		look    = "Bash(./jellyfin status),Bash(./jellyfin logs)"
		restart = look + ",Bash(./jellyfin restart)"
	)
	set := func(name, value string) string { return config.Prefix + name + "=" + value }
	return []string{
		"PATH=" + path,
		"HOME=" + stateDir,
		set("STATE_DIR", stateDir), set("TRANSCRIPTS", config.NoTranscripts), // nothing of a demo is to outlive it
		set("CLAUDE", claude),
		set("TIER1_TOOLS", "Bash"), set("TIER1_ALLOWED_TOOLS", look),
		set("TIER2_TOOLS", "Bash"), set("TIER2_ALLOWED_TOOLS", restart),
		set("TIER3_TOOLS", "Bash"), set("TIER3_ALLOWED_TOOLS", restart+",Bash(./jellyfin redeploy)"),
	}
}

// demoScenario is what the stand-in for the model says at each tier.
func demoScenario() claudesim.Scenario {
	check := func(status escalation.CheckStatus, problem string) []escalation.CheckResult {
		return []escalation.CheckResult{{Service: "jellyfin", CheckType: "http", Status: status, Error: problem}}
	}
	think := func(input, output int, reply claudesim.Reply) claudesim.Reply {
		return reply.Using(claudesim.Usage{Input: input, Output: output}).After(demoThinking)
	}
	return claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"},
			think(6_000, 300, claudesim.Bash("./jellyfin status").Saying("Checking the services.")),
			think(7_000, 300, claudesim.Bash("./jellyfin logs")),
			think(8_000, 600, claudesim.Conclude(escalation.Verdict{
				Status:   escalation.VerdictEscalate,
				Summary:  "jellyfin answers 502; its log says that its library is locked",
				Services: []string{"jellyfin"}, RecommendedTier: escalation.TierSafeRepair,
				Checks: check(escalation.CheckDown, "HTTP 502 Bad Gateway"),
			})),
		).Named("observe"),
		claudesim.On(claudesim.Match{Model: "sonnet"},
			think(12_000, 900, claudesim.Bash("./jellyfin restart").Saying("A restart is safe to try.")),
			think(13_000, 900, claudesim.Bash("./jellyfin status")),
			think(14_000, 1_500, claudesim.Conclude(escalation.Verdict{
				Status:   escalation.VerdictEscalate,
				Summary:  "a restart did not help: a lock of a process that is gone is left behind",
				Services: []string{"jellyfin"}, RecommendedTier: escalation.TierFullRepair,
				Checks:      check(escalation.CheckDown, "HTTP 502 Bad Gateway"),
				Findings:    "library.lock outlived the process that made it",
				Remediation: "restarted jellyfin once, still 502",
				Actions:     []escalation.Action{{Kind: escalation.ActionRestart, Service: "jellyfin"}},
			})),
		).Named("repair safely"),
		claudesim.On(claudesim.Match{Model: "opus"},
			think(18_000, 1_200, claudesim.Bash("./jellyfin redeploy").Saying("The lock goes away with a redeployment.")),
			think(19_000, 1_200, claudesim.Bash("./jellyfin status")),
			think(20_000, 2_000, claudesim.Conclude(escalation.Verdict{
				Status:   escalation.VerdictResolved,
				Summary:  "redeployed jellyfin, which cleared the lock; it answers 200",
				Services: []string{"jellyfin"}, Checks: check(escalation.CheckHealthy, ""),
				Actions: []escalation.Action{{Kind: escalation.ActionRedeployment, Service: "jellyfin", Succeeded: true}},
			})),
		).Named("repair fully"),
	)
}
