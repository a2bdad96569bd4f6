package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

const home = "HOME=/home/someone"

// workersUser makes the settings of root like those of other users.
const workersUser = "CLAUDEOPS_AGENT_USER=none"

// load loads the given settings in an otherwise empty environment.
func load(t *testing.T, settings ...string) Config {
	t.Helper()
	cfg, err := Load(append([]string{home, workersUser}, settings...))
	require.NoError(t, err)
	return cfg
}

// problemsOf returns the problems of the given settings, one sentence each.
func problemsOf(t *testing.T, settings ...string) []Problem {
	t.Helper()
	cfg, err := Load(append([]string{home, workersUser}, settings...))
	var problems *Error
	require.ErrorAs(t, err, &problems)
	require.Zero(t, cfg)
	return problems.Problems
}

func TestAnEmptyEnvironmentGivesTheDefaults(t *testing.T) {
	t.Parallel()
	cfg := load(t)
	require.Equal(t, "/home/someone/.local/state/claudeops", cfg.State.Dir)
	require.Equal(t, "sqlite:///home/someone/.local/state/claudeops/claudeops.db", cfg.State.DatabaseURL)
	require.Equal(t, "file:///home/someone/.local/state/claudeops-transcripts", cfg.State.Transcripts)
	require.Equal(t, "/home/someone/.local/state/claudeops/work", cfg.Claude.WorkDir)
	require.Equal(t, "/home/someone/.local/state/claudeops/claude", cfg.Claude.ConfigDir)
	require.False(t, cfg.Claude.Login)

	policy := cfg.Policy()
	require.Equal(t, escalation.TierFullRepair, policy.MaxTier)
	require.False(t, policy.DryRun)
	require.Equal(t, escalation.ContinuityAuto, policy.Continuity)
	require.InDelta(t, 0.80, policy.ResumeThreshold, 0)
	require.Zero(t, policy.ResumeMaxTokens)
	require.InDelta(t, 10, policy.ChainBudgetUSD, 0)
	require.InDelta(t, 25, policy.DayBudgetUSD, 0)
	require.Equal(t, limit(t, "3/1h"), policy.EscalationLimit)
	require.Equal(t, escalation.Cooldowns{
		Restarts: limit(t, "2/4h"), Redeployments: limit(t, "1/24h"), MaxWait: escalation.Duration(6 * time.Hour),
	}, policy.Cooldowns)
	require.Equal(t, 3, policy.MaxParallelIssues)
	var models []string
	for _, tier := range policy.Tiers {
		models = append(models, tier.Model)
	}
	require.Equal(t, []string{"haiku", "sonnet", "opus"}, models)
	require.Greater(t, policy.For(escalation.TierFullRepair).Timeout.Std(), cfg.Claude.IdleTimeout, "else no command of tier 3 could be that long")
}

func TestHeartbeatInterval(t *testing.T) {
	t.Parallel()
	cfg := load(t)
	require.Equal(t, 10*time.Second, cfg.Policy().HeartbeatInterval(), "six a minute where each is billed")
	require.Equal(t, time.Second, cfg.WithFreeHeartbeats().Policy().HeartbeatInterval())
	cfg = load(t, "CLAUDEOPS_HEARTBEAT_INTERVAL=4s")
	require.Equal(t, 4*time.Second, cfg.Policy().HeartbeatInterval())
	require.Equal(t, 4*time.Second, cfg.WithFreeHeartbeats().Policy().HeartbeatInterval(), "what the environment sets counts everywhere")
	for _, wrong := range []string{"500ms", "11s", "0s"} {
		found := problemsOf(t, "CLAUDEOPS_HEARTBEAT_INTERVAL="+wrong)
		require.Len(t, found, 1)
		require.Contains(t, found[0].Sentence, "it must be between 1s and 10s")
	}
}

func TestAnEmptyVariableIsAnUnsetOne(t *testing.T) {
	t.Parallel()
	var empty, blank []string
	for _, leaf := range leaves(defaults()) {
		empty, blank = append(empty, leaf.name+"="), append(blank, leaf.name+"= ")
	}
	unset, err := Load([]string{home})
	require.NoError(t, err)
	for _, settings := range [][]string{empty, blank} {
		cfg, err := Load(append(settings, home))
		require.NoError(t, err)
		require.Equal(t, unset.Settings(), cfg.Settings())
	}
}

func TestEachTierAddsToTheOneBelow(t *testing.T) {
	t.Parallel()
	tiers := load(t).Policy().Tiers
	for i, tier := range tiers[1:] {
		require.Subset(t, tier.Tools, tiers[i].Tools)
	}
	require.Equal(t, []string{"Bash", "Read", "Grep", "Glob"}, tiers[0].Tools)
	require.Equal(t, append(tiers[0].Tools, "Edit", "Write"), tiers[1].Tools)
}

func TestADryRunHasTheToolsOfTierOne(t *testing.T) {
	t.Parallel()
	policy := load(t, "CLAUDEOPS_DRY_RUN=true").Policy()
	for _, tier := range escalation.Tiers() {
		require.Equal(t, policy.Tiers[0].Tools, policy.For(tier).Tools)
	}
}

func TestSettingsReachThePolicy(t *testing.T) {
	t.Parallel()
	policy := load(t,
		"CLAUDEOPS_MAX_TIER=2", "CLAUDEOPS_DRY_RUN=True", "CLAUDEOPS_CONTINUITY=handoff", "CLAUDEOPS_RESUME_CONTEXT_THRESHOLD=1",
		"CLAUDEOPS_TIER2_MODEL=claude-sonnet[1m]",
		"CLAUDEOPS_TIER2_TOOLS=Bash,\n Read ,",
		"CLAUDEOPS_RESUME_MAX_TOKENS=150000", "CLAUDEOPS_CHAIN_BUDGET_USD=12.5", "CLAUDEOPS_DAY_BUDGET_USD=40", "CLAUDEOPS_ESCALATION_LIMIT=5/2h",
		"CLAUDEOPS_RESTART_LIMIT=3/30m", "CLAUDEOPS_REDEPLOYMENT_LIMIT=none", "CLAUDEOPS_COOLDOWN_OVERRIDES=db:restart=0/24h",
		"CLAUDEOPS_COOLDOWN_MAX_WAIT=0s", "CLAUDEOPS_MAX_PARALLEL_ISSUES=20",
		"CLAUDEOPS_TIER2_TIMEOUT=90s", "CLAUDEOPS_TIER2_BUDGET_USD=1.5",
	).Policy()
	require.Equal(t, escalation.TierPolicy{
		Model: "claude-sonnet[1m]", ContextWindow: 200_000, Tools: []string{"Bash", "Read"},
		Timeout: escalation.Duration(90 * time.Second), BudgetUSD: 1.5,
	}, policy.Tiers[1])
	require.Equal(t, escalation.TierSafeRepair, policy.MaxTier)
	require.True(t, policy.DryRun)
	require.Equal(t, escalation.ContinuityHandoffOnly, policy.Continuity)
	require.InDelta(t, 1, policy.ResumeThreshold, 0)
	require.Equal(t, 150_000, policy.ResumeMaxTokens)
	require.InDelta(t, 12.5, policy.ChainBudgetUSD, 0)
	require.InDelta(t, 40, policy.DayBudgetUSD, 0)
	require.Equal(t, limit(t, "5/2h"), policy.EscalationLimit)
	never := limit(t, "0/24h")
	require.Equal(t, escalation.Cooldowns{
		Restarts: limit(t, "3/30m"), Services: map[string]escalation.ServiceCooldowns{"db": {Restarts: &never}},
	}, policy.Cooldowns)
	require.Equal(t, 20, policy.MaxParallelIssues)
}

func limit(t *testing.T, text string) escalation.Limit {
	t.Helper()
	parsed, err := escalation.ParseLimit(text)
	require.NoError(t, err)
	return parsed
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, test := range map[string]struct {
		environ                   []string
		state, work, claude, base string
		file                      string
		login                     bool
	}{
		"XDG": {
			environ: []string{"XDG_STATE_HOME=/xdg"},
			state:   "/xdg/claudeops", work: "/xdg/claudeops/work", claude: "/xdg/claudeops/claude", base: "sqlite:///xdg/claudeops/claudeops.db", file: "/xdg/claudeops/claudeops.db",
		},
		"a relative XDG directory does not count": {
			environ: []string{home, "XDG_STATE_HOME=xdg"},
			state:   "/home/someone/.local/state/claudeops", work: "/home/someone/.local/state/claudeops/work",
			claude: "/home/someone/.local/state/claudeops/claude", base: "sqlite:///home/someone/.local/state/claudeops/claudeops.db", file: "/home/someone/.local/state/claudeops/claudeops.db",
		},
		"own": {
			environ: []string{"CLAUDEOPS_STATE_DIR=/s p", "CLAUDEOPS_WORK_DIR=" + dir, "CLAUDEOPS_CLAUDE_CONFIG_DIR=" + dir + "/..", "CLAUDEOPS_DATABASE_URL=sqlite:///d/x.db"},
			state:   "/s p", work: dir, claude: filepath.Dir(dir), base: "sqlite:///d/x.db", file: "/d/x.db",
		},
		"a space in the state directory": {
			environ: []string{"CLAUDEOPS_STATE_DIR=/s p"},
			state:   "/s p", work: "/s p/work", claude: "/s p/claude", base: "sqlite:///s%20p/claudeops.db", file: "/s p/claudeops.db",
		},
		"tilde": {
			environ: []string{home, "CLAUDEOPS_STATE_DIR=~/ops"},
			state:   "/home/someone/ops", work: "/home/someone/ops/work", claude: "/home/someone/ops/claude", base: "sqlite:///home/someone/ops/claudeops.db", file: "/home/someone/ops/claudeops.db",
		},
		"login": {
			environ: []string{"HOME=" + dir, "CLAUDEOPS_STATE_DIR=/s", "CLAUDEOPS_CLAUDE_CONFIG_DIR=login", "CLAUDE_CONFIG_DIR=" + dir},
			state:   "/s", work: "/s/work", claude: dir, base: "sqlite:///s/claudeops.db", file: "/s/claudeops.db", login: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := Load(append(test.environ, workersUser))
			require.NoError(t, err)
			require.Equal(t, test.state, cfg.State.Dir)
			require.Equal(t, test.work, cfg.Claude.WorkDir)
			require.Equal(t, test.claude, cfg.Claude.ConfigDir)
			require.Equal(t, test.base, cfg.State.DatabaseURL)
			require.Equal(t, test.login, cfg.Claude.Login)
			require.Equal(t, test.file, cfg.State.DatabaseFile())
		})
	}
}

func TestWithoutAnyHomeTheStateDirectoryIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, environ := range [][]string{nil, {"HOME=relative"}} {
		_, err := Load(environ)
		require.EqualError(t, err, "configuration: CLAUDEOPS_STATE_DIR is not set; it must name a directory, because neither XDG_STATE_HOME nor HOME gives a place for one.")
	}
}

func TestATildeWithoutAnyHome(t *testing.T) {
	t.Parallel()
	for _, environ := range [][]string{nil, {"HOME=relative"}} {
		_, err := Load(append(environ, "CLAUDEOPS_STATE_DIR=~/ops"))
		require.EqualError(t, err, `configuration: CLAUDEOPS_STATE_DIR is "~/ops"; it must not begin with ~, because HOME is not an absolute path.`)
	}
}

func TestLoadChangesNothing(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	load(t, "CLAUDEOPS_STATE_DIR="+state)
	require.NoDirExists(t, state)
}

func TestMakeDirs(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "a", "state")
	cfg := load(t, "CLAUDEOPS_STATE_DIR="+state)
	require.NoError(t, cfg.MakeDirs())
	require.NoError(t, cfg.MakeDirs(), "it may run again")
	for _, dir := range []string{state, cfg.Claude.WorkDir, cfg.Claude.ConfigDir, cfg.WorktreesDir(), state + "-transcripts"} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
	left, err := filepath.Glob(filepath.Join(state, ".writable*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestMakeDirsWithoutWorktrees(t *testing.T) {
	t.Parallel()
	cfg := load(t, "CLAUDEOPS_STATE_DIR="+filepath.Join(t.TempDir(), "state"), "CLAUDEOPS_WORKTREES=off")
	require.Equal(t, WorktreesOff, cfg.Claude.Worktrees)
	require.NoError(t, cfg.MakeDirs())
	require.NoDirExists(t, cfg.WorktreesDir())
	_, err := Load([]string{"HOME=/home/someone", "CLAUDEOPS_WORKTREES=on"})
	require.ErrorContains(t, err, `CLAUDEOPS_WORKTREES is "on"; it must be auto or off`)
}

// TestMakeDirsNamesEachSettingOnce checks that a directory that cannot be used is one line, with all that lies in it.
func TestMakeDirsNamesEachSettingOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	state := "directory " + file + "/state cannot be used: mkdir " + file + ": not a directory; make it writable, or set CLAUDEOPS_STATE_DIR to another"
	err := load(t, "CLAUDEOPS_STATE_DIR="+filepath.Join(file, "state")).MakeDirs()
	require.EqualError(t, err, state)
	err = load(t, "CLAUDEOPS_STATE_DIR="+filepath.Join(file, "state"), "CLAUDEOPS_TRANSCRIPTS=file://"+file+"/archive").MakeDirs()
	require.EqualError(t, err, state+"\ndirectory "+file+"/archive cannot be used: mkdir "+file+": not a directory; make it writable, or set CLAUDEOPS_TRANSCRIPTS to another")
	beside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(beside, "state-transcripts"), nil, 0o600))
	err = load(t, "CLAUDEOPS_STATE_DIR="+filepath.Join(beside, "state")).MakeDirs()
	require.ErrorContains(t, err, "set CLAUDEOPS_TRANSCRIPTS to another")
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for location, dir := range map[string]string{
		"none":                              "",
		"file:///var/lib/archive":           "/var/lib/archive",
		"file:///with%20a/space":            "/with a/space",
		"s3://bucket?region=eu-west-1":      "",
		"gs://bucket?prefix=claudeops/":     "",
		"azblob://container?prefix=a/b/":    "",
		"s3://bucket?endpoint=http://minio": "",
	} {
		cfg := load(t, "CLAUDEOPS_TRANSCRIPTS="+location)
		require.Equal(t, location, cfg.State.Transcripts)
		require.Equal(t, dir, cfg.State.TranscriptsDir())
	}
}
