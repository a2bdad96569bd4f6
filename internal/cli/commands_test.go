package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/cli/local"
	"github.com/claudeops/claudeops/internal/cli/setup"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/embedded"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/operations"
	"github.com/claudeops/claudeops/internal/program"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// result holds the exit code and the output of one run of the program.
type result struct {
	code           program.ExitCode
	stdout, stderr string
}

// starter runs the program with args as its arguments and environ as its environment.
func starter(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	return starterWaits(t, screenTimeout, environ, args...)
}

// starterWaits is like starter, with patience as the limit for the answer to a query. Use a short patience where no
// worker runs, so that the test does not wait for nothing.
func starterWaits(t *testing.T, patience time.Duration, environ []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), &console.Console{
		Process: program.Process{
			Args: args, Environ: environ, Stdin: strings.NewReader("from standard input"), Stdout: &stdout, Stderr: &stderr,
		}.WithSettings(),
		Clock: time.Now, Patience: patience,
	})
	return result{code, stdout.String(), stderr.String()}
}

// bareEnvironment returns a valid environment without claude or Temporal.
func bareEnvironment(t *testing.T, more ...string) []string {
	t.Helper()
	home := t.TempDir()
	return append([]string{
		"PATH=" + home, "HOME=" + home, simtest.WorkersUser, "CLAUDEOPS_STATE_DIR=" + filepath.Join(home, "state"),
		"TEMPORAL_ADDRESS=127.0.0.1:1", "CLAUDEOPS_GATE_TIMEOUT=0s", "CLAUDEOPS_SANDBOX=off",
	}, more...)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got := starter(t, bareEnvironment(t), "--version")
	require.Equal(t, result{program.ExitOK, "starter " + program.Version() + "\n", ""}, got)
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
		"an argument":        {args: []string{"run", "extra"}, want: "`starter run` takes no arguments, and \"extra\" is one (see `starter run --help`)"},
		"chain without ID":   {args: []string{"chain"}, want: "ID is missing: write `starter chain ID` (see `starter chain --help`)"},
		"empty ID":           {args: []string{"chain", ""}, want: "the argument of `starter chain` is empty"},
		"no tier to go to":   {args: []string{"escalate", "one"}, want: "--to is missing: say with it which tier is to run, 2 or 3"},
		"no higher tier":     {args: []string{"escalate", "one", "--to", "1"}, want: `--to is "1"; it must be 2 or 3`},
		"no replays wanted":  {args: []string{"replay", "--limit", "0"}, want: "--limit 0 is less than one chain"},
		"move nothing":       {args: []string{"chains", "move"}, want: "name the chains to move, or a version with --from, and not both"},
		"move twice":         {args: []string{"chains", "move", "one", "--from", "v1"}, want: "and not both"},
		"odd share":          {args: []string{"workers", "promote", "--percent", "101"}, want: "--percent is 101; it must be between 0 and 100"},
		"no chains wanted":   {args: []string{"chains", "--limit", "0"}, want: "--limit 0 is less than one chain"},
		"odd outcome":        {args: []string{"chains", "--outcome", "need_human"}, want: `--outcome is "need_human"; it must be healthy, resolved, known, suppressed, overridden, aborted, needs_human or failed`},
		"odd tier in list":   {args: []string{"chains", "--tier", "9"}, want: `--tier is "9"; it must be 1, 2 or 3`},
		"no db command":      {args: []string{"db"}, want: "say what to do with the database: status, migrate, copy or recover"},
		"copy onto itself":   {args: []string{"db", "copy"}, want: "source and target are the same database: name the target with --to"},
		"copy from nowhere":  {args: []string{"db", "copy", "--from", "mysql://u:hunter2@x/y"}, want: "--from (value not shown): it must be the URL of a file"},
		"copy to nowhere":    {args: []string{"db", "copy", "--to", "postgres://u:hunter2@x"}, want: "--to (value not shown): it must name a database"},
		"no policy command":  {args: []string{"policy"}, want: "say what to do with the policy: check, test, run, explain or suggest"},
		"check no tier":      {args: []string{"policy", "check", "ls"}, want: "--tier is missing: say with it for which tier, 1, 2 or 3"},
		"check odd tier":     {args: []string{"policy", "check", "--tier", "0", "ls"}, want: `--tier is "0"; it must be 1, 2 or 3`},
		"check nothing":      {args: []string{"policy", "check", "--tier", "1"}, want: "the command is missing (see `starter policy check --help`)"},
		"check words":        {args: []string{"policy", "check", "--tier", "1", "ls", "a"}, want: "`starter policy check` takes the command as one argument: put quotes around it"},
		"check two":          {args: []string{"policy", "check", "--tier", "1", "--input", "{}", "ls"}, want: "command and input exclude each other"},
		"check odd input":    {args: []string{"policy", "check", "--tier", "1", "--tool", "Read", "--input", "x"}, want: "the input must be a JSON object"},
		"check no input":     {args: []string{"policy", "check", "--tier", "1", "--tool", "Read"}, want: "the input of Read is missing"},
		"check a command":    {args: []string{"policy", "check", "--tier", "1", "--tool", "Read", "ls"}, want: "a command is for Bash; Read takes an input"},
		"check nowhere":      {args: []string{"policy", "check", "--tier", "1", "--dir", "/nonexistent", "ls"}, want: `--dir is "/nonexistent"; it must be an existing directory`},
		"test nothing":       {args: []string{"policy", "test"}, want: "FILE is missing: write `starter policy test FILE`"},
		"test no file":       {args: []string{"policy", "test", "/nonexistent"}, want: "read the table: open /nonexistent: no such file"},
		"test no table":      {args: []string{"policy", "test", "-"}, want: "standard input, line 1: invalid character"},
		"explain no tier":    {args: []string{"policy", "explain"}, want: "--tier is missing"},
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
			got := starter(t, bareEnvironment(t, tt.env...), tt.args...)
			require.Equal(t, program.ExitUsage, got.code, got.stderr)
			require.Contains(t, got.stderr, tt.want)
			require.Empty(t, got.stdout)
		})
	}
}

func TestConfigReportsEveryProblem(t *testing.T) {
	t.Parallel()
	got := starter(t, bareEnvironment(t, "CLAUDEOPS_MAX_TIER=9", "CLAUDEOPS_CONTINUITY=maybe"), "config")
	require.Contains(t, got.stderr, "CLAUDEOPS_MAX_TIER")
	require.Contains(t, got.stderr, "CLAUDEOPS_CONTINUITY")
}

func TestConfigAsJSON(t *testing.T) {
	t.Parallel()
	got := starter(t, bareEnvironment(t, "CLAUDEOPS_TIER1_MODEL=sonnet"), "config", "--output", "json")
	require.Equal(t, program.ExitOK, got.code, got.stderr)
	var settings []config.Setting
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &settings))
	for _, setting := range settings {
		require.NotEmpty(t, setting.Meaning, setting.Name)
		if setting.Name == "CLAUDEOPS_TIER1_MODEL" {
			require.Equal(t, "sonnet", setting.Value)
			require.Equal(t, config.SourceEnvironment, setting.Source)
			return
		}
	}
	require.Fail(t, "the setting is not listed")
}

func TestNoTemporal(t *testing.T) {
	t.Parallel()
	got := starter(t, bareEnvironment(t), "run")
	require.Equal(t, program.ExitFailure, got.code)
	require.Contains(t, got.stderr, "127.0.0.1:1")
	require.Contains(t, got.stderr, "TEMPORAL_ADDRESS")

	nowhere := starter(t, bareEnvironment(t, "TEMPORAL_ADDRESS=no..host:7233"), "run")
	require.Equal(t, program.ExitFailure, nowhere.code)
	require.Equal(t, "starter: connect to Temporal at no..host:7233: there is no such host; set TEMPORAL_ADDRESS to where it runs\n", nowhere.stderr)
}

func TestDoctorSaysHowToMend(t *testing.T) {
	t.Parallel()
	got := starter(t, bareEnvironment(t), "doctor")
	require.Equal(t, program.ExitFailure, got.code)
	require.Contains(t, got.stdout, "✓ state directory")
	require.Contains(t, got.stdout, "✓ database")
	require.Contains(t, got.stdout, "✓ containment")
	require.Regexp(t, "✗ claude .*install the Claude Code CLI, or set CLAUDEOPS_CLAUDE to its path", got.stdout)
	require.Regexp(t, "✗ credentials .*set ANTHROPIC_API_KEY, or CLAUDEOPS_CLAUDE_CONFIG_DIR=login", got.stdout)
	require.Contains(t, got.stdout, "✗ temporal")
	require.Contains(t, got.stderr, "3 of 14 checks failed")

	got = starter(t, bareEnvironment(t, "CLAUDE_CODE_USE_BEDROCK=1"), "doctor")
	require.Regexp(t, "! credentials +agents use CLAUDE_CODE_USE_BEDROCK themselves, and their commands can read it", got.stdout)
	got = starter(t, bareEnvironment(t, "ANTHROPIC_API_KEY=sk-secret", "ANTHROPIC_BASE_URL=gateway"), "doctor")
	require.Regexp(t, `✗ credentials +ANTHROPIC_BASE_URL is "gateway"`, got.stdout)

	require.Contains(t, got.stdout, "valid; all of it is from the environment")
	require.Regexp(t, `✓ policy +the built-in one\n`, got.stdout)
	dir := t.TempDir()
	written := func(name, text string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	settings := written("claudeops.env", "CLAUDEOPS_POLICY_FILE="+
		written("own.yaml", "version: 1\nextends: default\nwithout: {programs: [nl]}\n")+"\n")
	got = starter(t, bareEnvironment(t, "CLAUDEOPS_ENV_FILE="+settings), "doctor")
	require.Contains(t, got.stdout, "valid; the file of settings is "+settings)
	require.Contains(t, got.stdout, "the built-in one, changed by "+dir+"/own.yaml; `starter policy explain` says how")
	copied := written("copy.yaml", strings.ReplaceAll(string(deploy.Policy), "  - {program: mdadm,", "  - {program: raid,"))
	got = starter(t, bareEnvironment(t, "CLAUDEOPS_POLICY_FILE="+copied), "doctor")
	require.Contains(t, got.stdout, copied+", which lacks rules of the built-in one (1, such as never: mdadm): keep only your changes in it")

	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	got = starter(t, bareEnvironment(t, "CLAUDEOPS_STATE_DIR="+filepath.Join(blocked, "state")), "doctor", "-o", "json")
	require.Equal(t, program.ExitFailure, got.code)
	var findings []setup.Finding
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &findings))
	require.Equal(t, "state directory", findings[3].Check)
	require.False(t, findings[3].OK)
	require.Contains(t, findings[3].Detail, "CLAUDEOPS_STATE_DIR")
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
	environ := append(bareEnvironment(t, "CLAUDEOPS_CLAUDE="+claude, "CLAUDEOPS_POLICY_FILE="+simtest.OpenPolicy(t)), more...)
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
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"}))))

	var doctor result
	require.Eventually(t, func() bool { // retried, because a check gives up after a few seconds and the machine is busy with starting
		doctor = starter(t, append(environ, "ANTHROPIC_API_KEY=sk-secret"), "doctor")
		return doctor.code == program.ExitOK
	}, screenTimeout, screenLook, "what is well does not pass")
	require.Contains(t, doctor.stdout, "✓ clock")
	require.Regexp(t, `✓ credentials +ANTHROPIC_API_KEY stays with the worker: each session gets a key of its own\n`, doctor.stdout)
	require.NotContains(t, doctor.stdout, "sk-secret")
	require.Regexp(t, `✓ transcripts +archived at file:///.*-transcripts\n`, doctor.stdout)
	require.Contains(t, doctor.stdout, "✓ search attributes")

	healthy := starter(t, environ, "run", "--id", "one", "--wait")
	require.Equal(t, program.ExitOK, healthy.code, healthy.stderr)
	require.Contains(t, healthy.stdout, "tier 1 starts on haiku")
	require.Contains(t, healthy.stdout, "└── Session #1  Tier 1  haiku")
	require.Contains(t, healthy.stdout, "Outcome: healthy")

	unwell := starter(t, environ, "run", "--id", "two", "--prompt", "be unwell", "--actor", "anna", "--wait", "-o", "json")
	require.Equal(t, console.ExitNeedsPerson, unwell.code)
	require.Contains(t, unwell.stderr, "tier 1 asks for a person")
	var chain escalation.Chain
	require.NoError(t, json.Unmarshal([]byte(unwell.stdout), &chain))
	require.Equal(t, escalation.OutcomeNeedsHuman, chain.Outcome)
	require.Equal(t, "anna", chain.Actor)
	require.Equal(t, embedded.DefaultNamespace, chain.Sessions[0].Namespace)

	broken := starter(t, environ, "run", "--id", "three", "--prompt-file", "-", "--wait")
	require.Equal(t, console.ExitChainFailed, broken.code)

	taken := starter(t, environ, "run", "--id", "four")
	require.Equal(t, program.ExitOK, taken.code, taken.stderr)
	require.Contains(t, taken.stdout, "Started chain four")

	misspelt := starter(t, environ, "escalate", "one", "--to", "7")
	require.Equal(t, program.ExitUsage, misspelt.code)
	require.Contains(t, misspelt.stderr, `--to is "7"; it must be 2 or 3`)
	over := starter(t, environ, "escalate", "one", "--to", "2")
	require.Equal(t, program.ExitFailure, over.code)
	require.Contains(t, over.stderr, "chain one: no such chain is running")

	require.Contains(t, starter(t, environ, "chain", "two").stdout, "Outcome: needs_human")
	require.Contains(t, starter(t, environ, "chain", "2").stdout, "Backward: #2")
	requireCalls(t, environ, chain)
	unknown := starter(t, environ, "chain", "nobody")
	require.Equal(t, program.ExitFailure, unknown.code)
	require.Contains(t, unknown.stderr, "chain nobody: no such chain")
	unknown = starter(t, environ, "chain", "99")
	require.Contains(t, unknown.stderr, "there is no session #99")

	require.Eventually(t, func() bool {
		listed := starter(t, environ, "chains", "--outcome", "needs_human", "--service", "nas", "--since", "1h", "-o", "json")
		var rows []operations.Row
		return listed.code == program.ExitOK && json.Unmarshal([]byte(listed.stdout), &rows) == nil &&
			len(rows) == 1 && rows[0].ID == "two" && rows[0].Services[0] == "nas" && rows[0].Tier == 1
	}, screenTimeout, screenLook, "the chain is not listed")
	listed := starter(t, append(slices.Clone(environ), "CLAUDEOPS_SERVICES_FILE="+listedNAS(t)), "chains", "--service", "The  Nas")
	require.Contains(t, listed.stdout, "two", "an alias finds it, too")
	none := starter(t, environ, "chains", "--service", "o'clock")
	require.Equal(t, "No chains.\n", none.stdout, none.stderr)
}

// listedNAS writes a services file with an alias of the service nas, and returns its path.
func listedNAS(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "services.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nservices: [{name: nas, aliases: [the nas]}]\n"), 0o600))
	return file
}
