package setup

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// initEnvironment returns the environment of a user without claude and Temporal, and the directory of the settings.
func initEnvironment(t *testing.T, more ...string) (environ []string, settings string) {
	t.Helper()
	dir := t.TempDir()
	environ = append(clitest.Environment(t), "XDG_CONFIG_HOME="+dir, "TZ=Europe/Berlin")
	return append(environ, more...), filepath.Join(dir, "claudeops")
}

// starterOn returns the program on another machine. Its commands reach no Temporal.
func starterOn(host clitest.Host) clitest.Starter {
	s := clitest.Of(commands)
	s.Clock, s.Machine = chaintest.Clock, host.Machine
	return s
}

// home replaces the home in the environment by one that the machine has.
func home(environ []string, dir string) []string {
	return append(slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return strings.HasPrefix(entry, "HOME=") }), "HOME="+dir)
}

// TestInitWithoutATerminal ends with one sentence, and writes nothing.
func TestInitWithoutATerminal(t *testing.T) {
	t.Parallel()
	environ, settings := initEnvironment(t)
	got := starterOn(clitest.MediaHost(1000)).Run(t, environ, "init")
	require.Equal(t, clitest.Result{Code: program.ExitUsage, Stdout: "", Stderr: "claudeops: there is no terminal to ask on: say --yes, with flags for what the defaults do not " +
		"suit; nothing was written\n"}, got)
	for want, args := range map[string][]string{
		`--hours is "7"; it must be two hours of the day`: {"--hours", "7"},
		"--every is 1m0s; it must be between 5m and 24h":  {"--every", "1m"},
		`--ssh is "a b"; it must be the name of a host`:   {"--ssh", "a b"},
		"a budget must not be negative":                   {"--day-budget", "-1"},
		"this user has no sudo without a password":        {"--sudo"},
		"has no output in JSON":                           {"-o", "json"},
		`--max-tier is "4"; it must be 1, 2 or 3`:         {"--max-tier", "4"},
		"--notify is no place that can be notified: ":     {"--notify", "nonsense"},
	} {
		got := starterOn(clitest.Host{UID: 1000}).Run(t, environ, append([]string{"init"}, append(args, "--yes")...)...)
		require.Equal(t, program.ExitUsage, got.Code, "%v %s", args, got.Stderr)
		require.Contains(t, got.Stderr, want)
	}
	require.NoDirExists(t, settings)
}

// TestInitYes writes files on several machines without asking. The golden files have the output.
func TestInitYes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		host clitest.Host
		home string
		more []string
		args []string
	}{
		"bare":    {clitest.Host{UID: 1000}, "/home/ada", nil, nil},
		"compose": {clitest.MediaHost(1000), "/home/ada", []string{"ANTHROPIC_API_KEY=sk-ant-api03-zzzzzzzzzzzzzzzz"}, nil},
		"root":    {clitest.MediaHost(0), "/root", []string{"CLAUDEOPS_MAX_TIER=3"}, nil},
		"flags": {
			clitest.MediaHost(1000), "/home/ada", nil,
			[]string{
				"--max-tier", "2", "--day-budget", "0", "--chain-budget", "2.5", "--every", "2h", "--hours", "7-22", "--ssh", "pi", "--ssh", "nas.lan",
				"--sudo", "--no-dry-run",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ, settings := initEnvironment(t, tt.more...)
			environ = home(environ, tt.home)
			got := starterOn(tt.host).Run(t, environ, append([]string{"init"}, append(tt.args, "--yes")...)...)
			require.Equal(t, program.ExitOK, got.Code, got.Stderr)
			state := console.Variable(environ, "CLAUDEOPS_STATE_DIR")
			shown := strings.NewReplacer(filepath.Dir(settings), "CONFIG", state, "STATE").Replace(got.Stdout)
			shown = regexp.MustCompile(`(?m)^(✓ (sandbox|containment|agents' user) +|✗ temporal +).*`).ReplaceAllString(shown, "$1…")
			requireGolden(t, "init-"+name, shown)
			_, err := config.Load(environ)
			require.NoError(t, err)

			again := starterOn(tt.host).Run(t, environ, "init", "--yes")
			require.Equal(t, program.ExitOK, again.Code, again.Stderr)
			require.Contains(t, again.Stdout, "\nNothing to change in the files: they say what you want.\n")
			require.NotContains(t, again.Stdout, "+++")
		})
	}
}

// requireGolden compares output with a golden file.
func requireGolden(t *testing.T, name, output string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if chaintest.Update() {
		require.NoError(t, os.WriteFile(path, []byte(output), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), output)
}

// initPages are the questions of init on mediaHost, each with the keys that answer it.
var initPages = []struct{ name, sees, keys string }{
	{"model", "How do agents get at the model?", "\r"},
	{"key", "The supervisor keeps it", "sk-ant-api03-zzzzzzzzzzzzzzzz\r"},
	{"describe", "What should agents know of this machine?", "\r"},
	{"services", "Which of these are services to look after?", "x\r"}, // without the first
	{"tier", "How far may agents go on this machine?", "\x1b[B\r"},
	{"budgets", "Most dollars in a day", "\r\r"},
	{"every", "How often should Tier 1 look?", "\x1b[A\r"},
	{"hours", "Only in some hours of the day?", "7-22\r"},
	{"notify", "Where are you notified?", "\r"},
	{"projects", "With which Compose projects", "x\r"}, // also the one that does not run
	{"ssh", "On which other hosts", "x\r"},
	{"sudo", "May Tier 2 use sudo", "y"},
}

// answerTo answers the questions in front of a page.
func answerTo(t *testing.T, s *clitest.Screen, page string) {
	t.Helper()
	for _, one := range initPages {
		s.Sees(one.sees)
		if one.name == page {
			return
		}
		s.Types(one.keys)
	}
}

// TestInitAsks answers all questions on a terminal, and answers some of them anew in another run.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	environ, settings := initEnvironment(t)
	environ = home(environ, "/home/ada")
	s := starterOn(clitest.MediaHost(1000)).OnScreen(t, environ, 80, 24, "init")
	for _, page := range initPages {
		s.Sees(page.sees)
		s.Is("init-" + page.name)
		s.Types(page.keys)
	}
	s.Sees("Write 3 files?")
	s.Types("y")
	require.Equal(t, program.ExitOK, s.Ends(), s.Text())
	require.NotContains(t, s.Sent(), "sk-ant-api03", "the key is not shown")
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.Equal(t, escalation.TierSafeRepair, cfg.Chain.MaxTier)
	require.Equal(t, [2]float64{5, 3}, [2]float64{cfg.Limits.DayBudgetUSD, cfg.Limits.ChainBudgetUSD})
	require.Equal(t, []string{"watchtower", "backup"}, []string{cfg.Services.Catalog.Services()[0].Name, cfg.Services.Catalog.Services()[1].Name})
	policy, err := cfg.Guard.LoadPolicy()
	require.NoError(t, err)
	require.Equal(t, []string{"/opt/shop", "/srv/media"}, policy.Projects)
	require.Equal(t, []bool{true, false, true}, []bool{policy.Runs(1, "ssh"), policy.Runs(1, "sudo"), policy.Runs(2, "sudo")})
	env, err := os.ReadFile(filepath.Join(settings, "claudeops.env"))
	require.NoError(t, err)
	require.Contains(t, string(env), "\nANTHROPIC_API_KEY=sk-ant-api03-zzzzzzzzzzzzzzzz\n")

	again := starterOn(clitest.MediaHost(1000)).OnScreen(t, environ, 52, 30, "init")
	for _, page := range []struct{ sees, keys, name string }{
		{"What should agents know", "\r", ""},
		{"Which of these are services", "\r", "init-again-services"}, // the one that was left out
		{"How far may agents go", "\x1b[A\r", "init-again-tier"},
		{"Most dollars in a day", "\r\r", ""},
		{"How often should Tier 1 look?", "\r", "init-again-every"},
		{"Where are you notified?", "\r", ""},
		{"With which Compose projects", "x\r", ""},
		{"On which other hosts", "\r", ""},
		{"May Tier 2 use sudo", "n", ""},
		{"Write 2 files?", "y", ""},
	} {
		again.Sees(page.sees)
		if page.name != "" {
			again.Is(page.name)
		}
		again.Types(page.keys)
	}
	require.Equal(t, program.ExitOK, again.Ends(), again.Text())
	changed, err := os.ReadFile(filepath.Join(settings, "claudeops.env"))
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(env), "MAX_TIER=2", "MAX_TIER=1", 1), string(changed))
	cfg, err = config.Load(environ)
	require.NoError(t, err)
	policy, err = cfg.Guard.LoadPolicy()
	require.NoError(t, err)
	require.Equal(t, []string{"/srv/media"}, policy.Projects)
	require.Equal(t, []bool{true, false}, []bool{policy.Runs(1, "ssh"), policy.Runs(2, "sudo")})
}

// TestInitOffersRepositories chooses a repository that was found, so that plans may be carried out in it.
func TestInitOffersRepositories(t *testing.T) {
	t.Parallel()
	environ, _ := initEnvironment(t)
	dir := t.TempDir()
	infra := filepath.Join(dir, "infra")
	require.NoError(t, os.Mkdir(infra, 0o700))
	host := clitest.MediaHost(1000)
	files := maps.Clone(host.Files)
	files[infra[1:]+"/compose.yaml"], files[infra[1:]+"/.git/HEAD"] = &fstest.MapFile{}, &fstest.MapFile{}
	host.Files = files
	environ = home(environ, dir)
	s := starterOn(host).OnScreen(t, environ, 80, 24, "init")
	answerTo(t, s, "projects")
	s.Types("\r")
	s.Sees("In which repositories may agents work?")
	s.Types("x\r")
	s.Sees("May Tier 2 use sudo")
	s.Types("n")
	s.Sees("Write 3 files?")
	s.Types("y")
	require.Equal(t, program.ExitOK, s.Ends(), s.Text())
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.Equal(t, []string{infra}, []string(cfg.Claude.Repositories))
}

// TestInitIsLeft leaves at each question with Ctrl-C, and at the last one with no. Nothing is written.
func TestInitIsLeft(t *testing.T) {
	t.Parallel()
	for _, page := range append(slices.Clone(initPages), struct{ name, sees, keys string }{"write", "Write 3 files?", ""}) {
		t.Run(page.name, func(t *testing.T) {
			t.Parallel()
			environ, settings := initEnvironment(t)
			environ = home(environ, "/home/ada")
			s := starterOn(clitest.MediaHost(1000)).OnScreen(t, environ, 100, 30, "init")
			answerTo(t, s, page.name)
			s.Sees(page.sees)
			s.Types("\x03")
			require.Equal(t, program.ExitFailure, s.Ends(), s.Text())
			s.Sees("left before the end: nothing was written")
			require.NoDirExists(t, settings)
		})
	}
	environ, settings := initEnvironment(t)
	s := starterOn(clitest.MediaHost(1000)).OnScreen(t, home(environ, "/home/ada"), 100, 30, "init")
	answerTo(t, s, "")
	s.Sees("Write 3 files?")
	s.Types("n")
	require.Equal(t, program.ExitFailure, s.Ends(), s.Text())
	s.Sees("claudeops: nothing was written")
	require.NoDirExists(t, settings)
}

// TestInitGoesBack goes back from an answer that is not valid, and gives both answers anew.
func TestInitGoesBack(t *testing.T) {
	t.Parallel()
	environ, _ := initEnvironment(t)
	s := starterOn(clitest.MediaHost(1000)).OnScreen(t, home(environ, "/home/ada"), 100, 30, "init")
	answerTo(t, s, "budgets")
	s.Types("abc\r")
	s.Sees("it must be a number of dollars")
	s.Types("\x1b[Z") // shift+tab
	s.Sees("How far may agents go on this machine?")
	s.Types("\r")
	s.Sees("Most dollars in a day")
	s.Types("\x15" + "7\r\r")
	s.Sees("How often should Tier 1 look?")
	s.Types("\x03")
	require.Equal(t, program.ExitFailure, s.Ends(), s.Text())
}

// TestInitForTheUnit looks at a machine of root with a unit of Claude Ops. The settings would go where the unit reads
// them.
func TestInitForTheUnit(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"etc", "usr/lib"} { // make install, and a package
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			host := clitest.MediaHost(0)
			host.Files[dir+"/systemd/system/claudeops-up.service"] = &fstest.MapFile{Mode: 0o644 &^ fs.ModeType}
			environ, settings := initEnvironment(t)
			s := starterOn(host).OnScreen(t, home(environ, "/root"), 100, 30, "init")
			s.Sees("You are root, and claudeops-up is installed: the settings go to /etc/claudeops/claudeops.env, which")
			s.Sees(initPages[0].sees) // before the question, Ctrl-C would be a signal
			s.Types("\x03")
			require.Equal(t, program.ExitFailure, s.Ends())
			require.NoDirExists(t, settings)
		})
	}
}

// TestInitGrantsNoEngineThatAgentsAreDenied has docker in a directory of which the policy grants no program. Nothing of
// it is granted unasked, and init says why.
func TestInitGrantsNoEngineThatAgentsAreDenied(t *testing.T) {
	t.Parallel()
	environ, settings := initEnvironment(t)
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\n"), 0o700))
	environ = append(home(environ, "/home/ada"), "PATH="+bin)
	got := starterOn(clitest.MediaHost(1000)).Run(t, environ, "init", "--yes", "--no-dry-run")
	require.Equal(t, program.ExitOK, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "✗ programs     agents are denied "+bin+"/docker")
	require.NoFileExists(t, filepath.Join(settings, "policy.yaml"))
}

// TestInitGrantsProjectsByTheirNames has two projects of one directory.
func TestInitGrantsProjectsByTheirNames(t *testing.T) {
	t.Parallel()
	environ, settings := initEnvironment(t)
	host := clitest.MediaHost(1000)
	host.Programs["docker compose ls"] = `[{"Name":"blue","ConfigFiles":"/srv/media/compose.yaml"},{"Name":"green","ConfigFiles":"/srv/media/compose.yaml"},` +
		`{"Name":"kept","ConfigFiles":"/data/compose/1/docker-compose.yml"}]`
	got := starterOn(host).Run(t, home(environ, "/home/ada"), "init", "--yes", "--no-dry-run")
	require.Equal(t, program.ExitOK, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "kept (its files are not here)")
	policy, err := os.ReadFile(filepath.Join(settings, "policy.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(policy), `- "/srv/media -p blue"`)
	require.Contains(t, string(policy), `- "/srv/media -p green"`)
	require.NotContains(t, string(policy), `- "/srv/media"`)
}

// TestInitSaysWhereTheCostsComeFrom takes the price of the model that the CLI names, and then what looks have cost.
func TestInitSaysWhereTheCostsComeFrom(t *testing.T) {
	t.Parallel()
	path, err := claudesim.Install(t.TempDir(), claudesim.Play(claudesim.Always(claudesim.Say("fine"))).As(claudesim.VersionOld))
	require.NoError(t, err)
	environ, _ := initEnvironment(t, "CLAUDEOPS_CLAUDE="+path)
	got := starterOn(clitest.Host{UID: 1000}).Run(t, environ, "init", "--yes", "--no-dry-run")
	require.Contains(t, got.Stdout, "About $58 a month: 720 looks at $0.08 (an estimate: 12 turns at the prices of claude-haiku-4, which claude 2.1.286 takes for haiku, as of ")
	require.NotContains(t, got.Stdout, "With repairs")

	r := clitest.Records{T: t, Store: clitest.OpenRecords(t, environ)}
	for i := range 3 {
		r.Ran(fmt.Sprint("look-", i), escalation.TierObserve, time.Now().Add(-time.Duration(i)*time.Hour), escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"})
	}
	got = starterOn(clitest.Host{UID: 1000}).Run(t, environ, "init", "--yes", "--no-dry-run", "--every", "1h")
	require.Contains(t, got.Stdout, "About $180 a month: 720 looks at $0.25 (the median of 3 looks that found nothing wrong, 20")
}
