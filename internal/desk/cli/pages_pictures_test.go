package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/browsertest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// nightServices is the services file of the installation in the pictures.
const nightServices = `version: 1
services:
  - {name: jellyfin, aliases: [media-server], depends_on: [postgres, caddy], owner: grace, look: "curl -fsS http://jellyfin:8096/health"}
  - {name: caddy, criticality: critical, look: "curl -fsS https://example.org"}
  - {name: postgres, criticality: high}
  - {name: nextcloud, depends_on: [postgres, caddy]}
`

// badNight plays agents on a bad night. The prompt of each chain names its service. The agent that repairs postgres
// does not end.
func badNight() claudesim.Scenario {
	used := claudesim.Usage{Input: 9_000, Output: 700, CacheRead: 21_000, CacheCreation: 4_000}
	on := func(model, service string, replies ...claudesim.Reply) claudesim.Turn {
		for i := range replies {
			replies[i] = replies[i].Using(used)
		}
		return claudesim.On(claudesim.Match{Model: model, First: "Look at " + service}, replies...)
	}
	check := func(service, kind string, status escalation.CheckStatus, problem string) []escalation.CheckResult {
		return []escalation.CheckResult{
			{Service: service, CheckType: kind, Status: status, Error: problem, ResponseTimeMS: 1_043},
			{Service: "postgres", CheckType: "container", Status: escalation.CheckHealthy, ResponseTimeMS: 12},
		}
	}
	verdict := func(status escalation.VerdictStatus, service, kind, summary string, more escalation.Verdict) claudesim.Reply {
		more.Status, more.Summary, more.Services, more.Kind = status, summary, []string{service}, kind
		return claudesim.Conclude(more)
	}
	const jellyfin = "jellyfin answers 502: its process ends 40 s after each start, because the disk of its cache is full"
	const caddy = "the certificate of caddy ends in 2 days, and its renewal fails"
	return claudesim.Play(append(nightPlans(),
		claudesim.On(claudesim.Match{Prompt: "how is jellyfin?"}, claudesim.Bash("echo '/var/cache 100 %'"), claudesim.Conclude(escalation.TalkReply{
			Reply: "jellyfin is down since 22:15: the disk of its cache is full, so its process ends 40 s after each start.\n\n" +
				"Tier 2 restarted it once, which did not help. It waits for you at gate-1.",
			Proposals: []escalation.Proposal{
				{
					Kind: escalation.ProposeAnswer, ChainID: "jellyfin-2215", GateID: "gate-1", Action: escalation.GateFix, Guidance: "move the cache to /srv",
					Why: "/srv has 400 GB left, and nothing is deleted.",
				},
				{Kind: escalation.ProposeChain, Services: []string{"postgres"}, Prompt: "why is it slow?", Why: "It has waited for a lock since 22:20."},
			},
		}).Using(used)),
		claudesim.On(claudesim.Match{Prompt: "and caddy?"}, claudesim.Conclude(escalation.TalkReply{
			Reply: "caddy answers. Its certificate was renewed by tier 3 tonight, and is valid for 90 days." + strings.Repeat(" More follows.", 200),
		}).InPieces(2*time.Second)),
		on("haiku", "jellyfin",
			claudesim.Bash("echo 'HTTP 502 Bad Gateway'").Saying("I look at what answers."), claudesim.Bash("echo '/var/cache 100 %'"),
			verdict(escalation.VerdictEscalate, "jellyfin", "disk_full", jellyfin,
				escalation.Verdict{RecommendedTier: 2, Checks: check("jellyfin", "http", escalation.CheckDown, "502 Bad Gateway")})),
		on("sonnet", "jellyfin",
			claudesim.Bash("echo restarted").Saying("A restart is safe to try."), claudesim.Bash("echo 'HTTP 502 Bad Gateway'"),
			verdict(escalation.VerdictNeedsHuman, "jellyfin", "disk_full", jellyfin, escalation.Verdict{
				Checks:   check("jellyfin", "http", escalation.CheckDown, "502 Bad Gateway"),
				Findings: "df shows /var/cache at 100 %.", Remediation: "restarted jellyfin once; it failed again after 40 s. Deleting its cache needs a person",
				Actions: []escalation.Action{{Kind: escalation.ActionRestart, Service: "jellyfin", Detail: "docker restart jellyfin"}},
			})),
		on("haiku", "caddy", claudesim.Bash("echo 'notAfter in 2 days'"),
			verdict(escalation.VerdictEscalate, "caddy", "certificate", caddy,
				escalation.Verdict{RecommendedTier: 2, Checks: check("caddy", "certificate", escalation.CheckDegraded, "ends in 2 days")})),
		on("sonnet", "caddy", claudesim.Bash("echo renewed"),
			verdict(escalation.VerdictEscalate, "caddy", "certificate", caddy, escalation.Verdict{RecommendedTier: 3, Remediation: "asked for a renewal, which was refused"})),
		on("opus", "caddy", claudesim.Bash("echo redeployed"),
			verdict(escalation.VerdictResolved, "caddy", "certificate", "redeployed caddy with the new DNS key; its certificate is new",
				escalation.Verdict{Actions: []escalation.Action{{Kind: escalation.ActionRedeployment, Service: "caddy", Detail: "docker compose up -d caddy", Succeeded: true}}})),
		on("haiku", "postgres",
			verdict(escalation.VerdictEscalate, "postgres", "slow", "postgres answers slowly: 40 connections wait for a lock", escalation.Verdict{RecommendedTier: 2})),
		on("sonnet", "postgres", claudesim.Bash("sleep 300; echo 'docker logs --tail 200 postgres'")),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all services answer"}).Using(used)),
	)...)
}

// TestScreenshots lets an installation have a bad night, and writes pictures of all its pages to the folder that
// SCREENSHOTS names: light, dark and narrow. `make screenshots` calls it.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		t.Skip("make screenshots writes the pictures")
	}
	require.NoError(t, os.MkdirAll(folder, 0o750))
	services := filepath.Join(t.TempDir(), "services.yaml")
	require.NoError(t, os.WriteFile(services, []byte(nightServices), 0o600))
	environ := startInstallation(t, badNight(), "CLAUDEOPS_SERVICES_FILE="+services, "CLAUDEOPS_GATE_TIMEOUT=72h",
		"CLAUDEOPS_REPOSITORIES="+nightRepository(t), "CLAUDEOPS_DAY_BUDGET_USD=25", "CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_TIER2_TOOLS=Bash", "CLAUDEOPS_TIER3_TOOLS=Bash", "CLAUDEOPS_HEARTBEAT_INTERVAL=1s",
		"CLAUDEOPS_MAX_CONCURRENT_AGENTS=6", "CLAUDEOPS_ESCALATION_LIMIT=none", "CLAUDEOPS_POLICY_FILE="+nightPolicy(t)) // several repair, and some do not end
	root, link := openPages(t, append(environ, "CLAUDEOPS_POLICY_FILE=")) // the page of the policy shows the built-in one
	must := func(args ...string) {
		got := starter(t, environ, args...)
		require.Contains(t, []program.ExitCode{program.ExitOK, 3}, got.Code, got.Stderr)
	}
	must("run", "--id", "look-2100", "--wait")
	run := func(service string, more ...string) {
		must(append([]string{"run", "--id", service + "-2215", "--service", service, "--prompt", "Look at " + service}, more...)...)
	}
	run("caddy", "--wait")
	run("jellyfin")
	require.Eventually(t, func() bool {
		return strings.Contains(starter(t, environ, "gate").Stdout, "jellyfin-2215")
	}, clitest.Timeout, clitest.Look)
	run("postgres")
	must("schedule", "create", "hourly", "--every", "1h", "--jitter", "5m")
	must("schedule", "create", "backups", "--every", "24h")
	must("schedule", "pause", "backups", "--note", "the backup host is being replaced")

	must("talk", "ada", "--message", "how is jellyfin?", "--actor", "ada")
	go func() { _ = starter(t, environ, "talk", "ada", "--message", "and caddy?", "--actor", "ada") }()

	tab := browsertest.Open(t)
	tab.Show(link)
	tab.UntilText("1 chain waits for your answer, 2 incidents are open")
	tab.UntilText("sleep 300")
	tab.Show(root + "/talk/ada")
	tab.UntilText("caddy answers. Its certificate")
	for name, one := range map[string]struct {
		path, scheme  string
		width, height int64
	}{
		"page-now": {"/", "light", 1000, 700}, "page-chain": {"/chains/caddy-2215", "dark", 1000, 700},
		"page-session": {"/sessions/6", "light", 1000, 700}, "page-phone": {"/", "dark", 390, 844},
	} {
		tab.Look(one.scheme, one.width)
		tab.Show(root + one.path)
		tab.UntilText("This page updates itself.")
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".webp"), tab.Small(one.height), 0o600))
	}
	startNightPlans(t, environ, must) // after the pictures of the documentation
	for name, path := range map[string]string{
		"talk": "/talk/ada", "now": "/", "chains": "/chains", "chain": "/chains/jellyfin-2215", "climbed": "/chains/caddy-2215", "changed": "/chains/nextcloud-2230",
		"plan-gate": "/chains/plan-run-ports", "plan-running": "/chains/plan-run-disks", "plan-reviewed": "/chains/plan-review-disks", "session": "/sessions/6",
		"incidents": "/incidents?state=all", "incident": "/incidents/1", "services": "/services", "service": "/services/jellyfin",
		"schedules": "/schedules", "schedule": "/schedules/hourly", "cost": "/cost", "policy": "/policy?tier=2&call=rm+-rf+%2Fvar%2Fcache", "unknown": "/nothing",
	} {
		for look, width := range map[string]int64{"light": 1080, "dark": 1080, "narrow": 360} {
			scheme := look
			if look == "narrow" {
				scheme = "light"
			}
			tab.Look(scheme, width)
			tab.Show(root + path)
			file := filepath.Join(folder, fmt.Sprintf("%s-%s.png", name, look))
			require.NoError(t, os.WriteFile(file, tab.Picture(), 0o600))
		}
	}
}
