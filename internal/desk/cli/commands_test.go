package cli

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/cli/local"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	got := starter(t, clitest.Environment(t), "--version")
	require.Equal(t, clitest.Result{Code: program.ExitOK, Stdout: "claudeops " + program.Version() + "\n", Stderr: ""}, got)
}

// TestHelpGroupsCommands checks that each command is under a heading of ours.
func TestHelpGroupsCommands(t *testing.T) {
	t.Parallel()
	help := starter(t, clitest.Environment(t), "--help")
	require.Contains(t, help.Stdout, "Every day:")
	require.NotContains(t, help.Stdout, "Additional")
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args, env []string
		want      string
	}{
		"unknown command":    {args: []string{"rnu"}, want: `unknown command "rnu"`},
		"unknown flag":       {args: []string{"run", "--teir", "2"}, want: "unknown flag: --teir"},
		"tier out of range":  {args: []string{"run", "--tier", "4"}, want: `--tier is "4"; it must be 1, 2 or 3`},
		"tier zero":          {args: []string{"run", "--tier", "0"}, want: `--tier is "0"; it must be 1, 2 or 3`},
		"tier above maximum": {args: []string{"run", "--tier", "3", "--max-tier", "2"}, want: "start_tier 3 is higher than max_tier 2"},
		"prompt twice":       {args: []string{"run", "--prompt", "a", "--prompt-file", "b"}, want: "--prompt and --prompt-file exclude each other"},
		"prompt file gone":   {args: []string{"run", "--prompt-file", "/nonexistent"}, want: "read the prompt: open /nonexistent: no such file"},
		"odd conversation":   {args: []string{"run", "--resume-from", "x"}, want: `resume_from.session_id "x" is not a UUID`},
		"odd actor":          {args: []string{"run", "--actor", " "}, want: "actor is empty: say who you are"},
		"tier no number":     {args: []string{"run", "--tier", "x"}, want: `--tier is "x"; it must be 1, 2 or 3 (see`},
		"odd switch":         {args: []string{"run", "--dry-run=maybe"}, want: `--dry-run is "maybe"; it must be true or false`},
		"odd model":          {args: []string{"run", "--model", "opus"}, want: `--model is "opus"; it must be a tier, = and a model`},
		"empty service":      {args: []string{"run", "--service", ""}, want: "services: service 1 has a blank name"},
		"service forgotten":  {args: []string{"run", "-s", "nas", "-s", ""}, want: "services: service 2 has a blank name"},
		"odd service":        {args: []string{"run", "--service", `n"as`}, want: "it must be names, separated by commas"},
		"ID with a space":    {args: []string{"run", "--id", "x y"}, want: `--id "x y" must begin with a letter or digit`},
		"ID like a session":  {args: []string{"run", "--id", "12"}, want: "--id 12 would be taken for the number of a session"},
		"odd output":         {args: []string{"config", "-o", "yaml"}, want: `--output is "yaml"; it must be text or json`},
		"odd limit":          {args: []string{"gate", "--limit", "x"}, want: `--limit is "x"; it must be a whole number`},
		"codec for all":      {args: []string{"codec", "--listen", ":8234"}, want: "--listen :8234 is open to other hosts"},
		"half a certificate": {args: []string{"codec", "--tls-cert", "x"}, want: "--tls-cert and --tls-key go together"},
		"odd origin":         {args: []string{"codec", "--origin", "https://ui.example/x"}, want: "--origin \"https://ui.example/x\" must be the scheme and host"},
		"codec without keys": {args: []string{"codec"}, want: "there is nothing to decrypt with: set CLAUDEOPS_ENCRYPTION_KEYS_FILE"},
		"odd duration":       {args: []string{"chains", "--since", "1d"}, want: `--since is "1d"; it must be a duration with its unit`},
		"an argument":        {args: []string{"run", "extra"}, want: "`claudeops run` takes no arguments, and \"extra\" is one (see `claudeops run --help`)"},
		"chain without ID":   {args: []string{"chain"}, want: "ID is missing: write `claudeops chain ID` (see `claudeops chain --help`)"},
		"empty ID":           {args: []string{"chain", ""}, want: "the argument of `claudeops chain` is empty"},
		"no tier to go to":   {args: []string{"escalate", "one"}, want: "--to is missing: say with it which tier is to run, 2 or 3"},
		"no higher tier":     {args: []string{"escalate", "one", "--to", "1"}, want: `--to is "1"; it must be 2 or 3`},
		"no replays wanted":  {args: []string{"replay", "--limit", "0"}, want: "--limit 0 is less than one chain"},
		"move nothing":       {args: []string{"chains", "move"}, want: "name the chains to move, or a version with --from, and not both"},
		"move twice":         {args: []string{"chains", "move", "one", "--from", "v1"}, want: "and not both"},
		"odd share":          {args: []string{"workers", "promote", "--percent", "101"}, want: "--percent is 101; it must be between 0 and 100"},
		"no chains wanted":   {args: []string{"chains", "--limit", "0"}, want: "--limit 0 is less than one chain"},
		"odd outcome":        {args: []string{"chains", "--outcome", "need_human"}, want: `--outcome is "need_human"; it must be healthy, resolved, approved, known, suppressed, overridden, aborted, needs_human or failed`},
		"odd tier in list":   {args: []string{"chains", "--tier", "9"}, want: `--tier is "9"; it must be 1, 2 or 3`},
		"no db command":      {args: []string{"db"}, want: "say what to do with the database: status, migrate, copy, release or recover"},
		"copy onto itself":   {args: []string{"db", "copy"}, want: "source and target are the same database: name the target with --to"},
		"copy from nowhere":  {args: []string{"db", "copy", "--from", "mysql://u:hunter2@x/y"}, want: "--from (value not shown): it must be the URL of a file"},
		"copy to nowhere":    {args: []string{"db", "copy", "--to", "postgres://u:hunter2@x"}, want: "--to (value not shown): it must name a database"},
		"no policy command":  {args: []string{"policy"}, want: "say what to do with the policy: check, test, run, explain or suggest"},
		"check no tier":      {args: []string{"policy", "check", "ls"}, want: "--tier is missing: say with it for which tier, 1, 2 or 3"},
		"check odd tier":     {args: []string{"policy", "check", "--tier", "0", "ls"}, want: `--tier is "0"; it must be 1, 2 or 3`},
		"check nothing":      {args: []string{"policy", "check", "--tier", "1"}, want: "the command is missing (see `claudeops policy check --help`)"},
		"check words":        {args: []string{"policy", "check", "--tier", "1", "ls", "a"}, want: "`claudeops policy check` takes the command as one argument: put quotes around it"},
		"check two":          {args: []string{"policy", "check", "--tier", "1", "--input", "{}", "ls"}, want: "command and input exclude each other"},
		"check odd input":    {args: []string{"policy", "check", "--tier", "1", "--tool", "Read", "--input", "x"}, want: "the input must be a JSON object"},
		"check no input":     {args: []string{"policy", "check", "--tier", "1", "--tool", "Read"}, want: "the input of Read is missing"},
		"check a command":    {args: []string{"policy", "check", "--tier", "1", "--tool", "Read", "ls"}, want: "a command is for Bash; Read takes an input"},
		"check nowhere":      {args: []string{"policy", "check", "--tier", "1", "--dir", "/nonexistent", "ls"}, want: `--dir is "/nonexistent"; it must be an existing directory`},
		"test nothing":       {args: []string{"policy", "test"}, want: "FILE is missing: write `claudeops policy test FILE`"},
		"test no file":       {args: []string{"policy", "test", "/nonexistent"}, want: "read the table: open /nonexistent: no such file"},
		"test no table":      {args: []string{"policy", "test", "-"}, want: "standard input, line 1: invalid character"},
		"explain no tier":    {args: []string{"policy", "explain"}, want: "--tier is missing"},
		"no plan command":    {args: []string{"plan"}, want: "say what to do with the plan: review, run or status"},
		"plan without file":  {args: []string{"plan", "run"}, want: "FILE is missing: write `claudeops plan run FILE`"},
		"plan elsewhere":     {args: []string{"plan", "run", "/etc/plan.md"}, want: `file "/etc/plan.md" must be a plain path below the working directory`},
		"plan above":         {args: []string{"plan", "review", "docs/../../x.md"}, want: `file "../x.md" must be a plain path`},
		"plan with odd ID":   {args: []string{"plan", "run", "plan.md", "--id", "7"}, want: "--id 7 would be taken for the number of a session"},
		"odd plan budget":    {args: []string{"plan", "run", "plan.md", "--budget", "-1"}, want: "budget_usd -1 must not be negative"},
		"phases of a review": {args: []string{"plan", "review", "plan.md", "--phase", "1"}, want: "unknown flag: --phase"},
		"plan prompt twice":  {args: []string{"plan", "run", "plan.md", "-p", "a", "--prompt-file", "b"}, want: "--prompt and --prompt-file exclude each other"},
		"broken policy": {
			args: []string{"policy", "explain", "--tier", "1"}, env: []string{"CLAUDEOPS_POLICY_FILE=/nonexistent"},
			want: `CLAUDEOPS_POLICY_FILE is "/nonexistent"; it must name a policy that can be used: open /nonexistent: no such file`,
		},
		"address of a web site": {
			args: []string{"chains"}, env: []string{"TEMPORAL_ADDRESS=http://localhost:7233"},
			want: `TEMPORAL_ADDRESS is "http://localhost:7233"; write host:port, without http://`,
		},
		"negative budget": {
			args: []string{"run", "--wait"}, env: []string{"CLAUDEOPS_DAY_BUDGET_USD=-1"},
			want: `CLAUDEOPS_DAY_BUDGET_USD is "-1"; it must be 0 (no cap) or more.`,
		},
		"negative limit": {
			args: []string{"schedule", "create", "x", "--every", "1h"}, env: []string{"CLAUDEOPS_ESCALATION_LIMIT=-1/1h"},
			want: `CLAUDEOPS_ESCALATION_LIMIT is "-1/1h"; it must be a number and a duration`,
		},
		"invalid configuration": {
			args: []string{"config"}, env: []string{"CLAUDEOPS_MAX_TIER=9", "CLAUDEOPS_DRYRUN=true"}, want: "CLAUDEOPS_DRYRUN",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := starter(t, clitest.Environment(t, tt.env...), tt.args...)
			require.Equal(t, program.ExitUsage, got.Code, got.Stderr)
			require.Contains(t, got.Stderr, tt.want)
			require.Empty(t, got.Stdout)
		})
	}
}

func TestNoTemporal(t *testing.T) {
	t.Parallel()
	got := starter(t, clitest.Environment(t), "run")
	require.Equal(t, program.ExitFailure, got.Code)
	require.Contains(t, got.Stderr, "127.0.0.1:1")
	require.Contains(t, got.Stderr, "TEMPORAL_ADDRESS")

	nowhere := starter(t, clitest.Environment(t, "TEMPORAL_ADDRESS=no..host:7233"), "run")
	require.Equal(t, program.ExitFailure, nowhere.Code)
	require.Equal(t, "claudeops: connect to Temporal at no..host:7233: there is no such host; set TEMPORAL_ADDRESS to where it runs\n", nowhere.Stderr)
}

// startInstallation starts a server and a worker whose stand-in for claude plays scenario. It returns the environment
// for running the program against them.
func startInstallation(t *testing.T, scenario claudesim.Scenario, more ...string) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	claude, err := claudesim.Install(t.TempDir(), scenario)
	require.NoError(t, err)
	return startInstalled(t, claude, more...)
}

// startInstalled is like startInstallation, but uses a claude that is installed already.
func startInstalled(t *testing.T, claude string, more ...string) []string {
	t.Helper()
	environ := append(clitest.Environment(t, "CLAUDEOPS_CLAUDE="+claude, "CLAUDEOPS_POLICY_FILE="+simtest.OpenPolicy(t)), more...)
	environ[0] = "PATH=" + os.Getenv("PATH")
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	logger := (&console.Console{Process: program.Process{Stderr: os.Stderr}}).QuietLogger()
	one, err := local.StartAllInOne(t.Context(), cfg, embedded.Options{NoUI: true, Logger: logger}, nil,
		supervisor.Environment{Environ: environ, Host: "host-1", Logger: logger, SweepInterval: time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, one.Stop()) })
	return append(environ, "TEMPORAL_ADDRESS="+one.Address())
}

func TestCommandsOnARealServer(t *testing.T) {
	t.Parallel()
	environ := startInstallation(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "be unwell"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictNeedsHuman, Summary: "a disk is dying", Services: []string{"nas"},
		})),
		claudesim.On(claudesim.Match{Prompt: "from standard input"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictFailed, Summary: "no way in",
		})),
		claudesim.On(claudesim.Match{Prompt: "five calls"}, append(
			slices.Repeat([]claudesim.Reply{claudesim.Bash("uptime")}, 5),
			claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))...),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))),
		"CLAUDEOPS_SERVICES_FILE="+clitest.ServicesFile(t))

	var doctor clitest.Result
	require.Eventually(t, func() bool { // retried, because a check gives up after a few seconds and the machine is busy with starting
		doctor = starter(t, append(environ, "ANTHROPIC_API_KEY=sk-secret", "ANTHROPIC_BASE_URL=http://127.0.0.1:1"), "doctor")
		return doctor.Code == program.ExitOK
	}, clitest.Timeout, clitest.Look, "what is well does not pass")
	require.Contains(t, doctor.Stdout, "✓ clock")
	require.Regexp(t, `✓ credentials +ANTHROPIC_API_KEY stays with the worker: each session gets a key of its own\n`, doctor.Stdout)
	require.NotContains(t, doctor.Stdout, "sk-secret")
	require.Regexp(t, `✓ transcripts +archived at file:///.*-transcripts\n`, doctor.Stdout)
	require.Contains(t, doctor.Stdout, "✓ search attributes")

	healthy := starter(t, environ, "run", "--id", "one", "--wait")
	require.Equal(t, program.ExitOK, healthy.Code, healthy.Stderr)
	require.Contains(t, healthy.Stdout, "tier 1 starts on haiku")
	require.Contains(t, healthy.Stdout, "└── Session #1  Tier 1  haiku")
	require.Contains(t, healthy.Stdout, "Outcome: healthy")

	unwell := starter(t, environ, "run", "--id", "two", "--prompt", "be unwell", "--actor", "anna", "--wait", "-o", "json")
	require.Equal(t, console.ExitNeedsPerson, unwell.Code)
	require.Contains(t, unwell.Stderr, "tier 1 asks for a person")
	var chain escalation.Chain
	require.NoError(t, json.Unmarshal([]byte(unwell.Stdout), &chain))
	require.Equal(t, escalation.OutcomeNeedsHuman, chain.Outcome)
	require.Equal(t, "anna", chain.Actor)

	broken := starter(t, environ, "run", "--id", "three", "--prompt-file", "-", "--wait")
	require.Equal(t, console.ExitChainFailed, broken.Code)

	taken := starter(t, environ, "run", "--id", "four", "--service", "bad;name")
	require.Equal(t, program.ExitOK, taken.Code, taken.Stderr)
	require.Contains(t, taken.Stdout, "Started chain four")
	require.Contains(t, taken.Stdout, "Not in the services file: bad;name\n")

	misspelt := starter(t, environ, "escalate", "one", "--to", "7")
	require.Equal(t, program.ExitUsage, misspelt.Code)
	require.Contains(t, misspelt.Stderr, `--to is "7"; it must be 2 or 3`)
	over := starter(t, environ, "escalate", "one", "--to", "2")
	require.Equal(t, program.ExitFailure, over.Code)
	require.Contains(t, over.Stderr, "chain one: it has ended, and there is nothing to escalate")

	require.Contains(t, starter(t, environ, "chain", "two").Stdout, "Outcome: needs a person")
	require.Contains(t, starter(t, environ, "chain", "2").Stdout, "Backward: #2")
	requireCalls(t, environ, chain)
	unknown := starter(t, environ, "chain", "nobody")
	require.Equal(t, program.ExitFailure, unknown.Code)
	require.Contains(t, unknown.Stderr, "chain nobody: no such chain")
	unknown = starter(t, environ, "chain", "99")
	require.Contains(t, unknown.Stderr, "there is no session #99")

	planless := starter(t, environ, "plan", "run", "nofile.md")
	require.Equal(t, program.ExitUsage, planless.Code, planless.Stdout)
	require.Contains(t, planless.Stderr, "nofile.md")

	called := starter(t, environ, "run", "--id", "five", "--prompt", "five calls", "--wait")
	require.Equal(t, program.ExitOK, called.Code, called.Stderr)
	require.Contains(t, called.Stdout, "calls: 6 allowed, 0 denied\n", "with its output; heartbeats show only some of quick calls")

	require.Eventually(t, func() bool {
		listed := starter(t, environ, "chains", "--outcome", "needs_human", "--service", "nas", "--since", "1h", "-o", "json")
		var rows []operations.Row
		return listed.Code == program.ExitOK && json.Unmarshal([]byte(listed.Stdout), &rows) == nil &&
			len(rows) == 1 && rows[0].ID == "two" && rows[0].Services[0] == "nas" && rows[0].Tier == 1
	}, clitest.Timeout, clitest.Look, "the chain is not listed")
	listed := starter(t, append(slices.Clone(environ), "CLAUDEOPS_SERVICES_FILE="+clitest.ServicesFile(t)), "chains", "--service", "The  Nas")
	require.Contains(t, listed.Stdout, "two", "an alias finds it, too")
	none := starter(t, environ, "chains", "--service", "o'clock")
	require.Equal(t, "No chains.\n", none.Stdout, none.Stderr)
}
