package cli

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/chaintest"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/discover"
	"github.com/claudeops/claudeops/internal/embedded/embeddedtest"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/program"
)

// initHost is a machine for init to look at, with programs that print what is given for the beginning of their command lines.
type initHost struct {
	uid      int
	files    fstest.MapFS
	programs map[string]string
}

func (h initHost) machine(environ []string) discover.Host {
	files := h.files
	if files == nil {
		files = fstest.MapFS{}
	}
	return discover.Host{
		Files: files, Environ: environ, Hostname: "nas", UID: h.uid,
		Run: func(_ context.Context, name string, args ...string) (string, error) {
			words := strings.Join(append([]string{name}, args...), " ")
			for call, printed := range h.programs {
				if strings.HasPrefix(words, call) {
					return printed, nil
				}
			}
			return "", discover.ErrMissing
		},
	}
}

// mediaHost is a machine with a Compose project. Its user has hosts for ssh, and sudo without a password.
func mediaHost(uid int) initHost {
	return initHost{
		uid: uid,
		files: fstest.MapFS{
			"etc/os-release":                    {Data: []byte("PRETTY_NAME=\"Debian GNU/Linux 12\"\n")},
			"etc/systemd/system/backup.service": {},
			"home/ada/.ssh/config":              {Data: []byte("Host pi web1\n")},
			"srv/media/compose.yaml":            {},
			"opt/shop/compose.yaml":             {},
		},
		programs: map[string]string{
			"docker ps": `{"Names":"media-jellyfin-1","State":"running","Labels":"com.docker.compose.project=media,com.docker.compose.service=jellyfin"}
{"Names":"watchtower","State":"running"}`,
			"docker compose ls": `[{"Name":"media","ConfigFiles":"/srv/media/compose.yaml"}]`,
			"sudo -n -l":        "(ALL) NOPASSWD: ALL",
		},
	}
}

// initEnvironment returns the environment of a user without claude and Temporal, and the directory of the settings.
func initEnvironment(t *testing.T, more ...string) (environ []string, settings string) {
	t.Helper()
	dir := t.TempDir()
	environ = append(bareEnvironment(t), "XDG_CONFIG_HOME="+dir, "TZ=Europe/Berlin")
	return append(environ, more...), filepath.Join(dir, "claudeops")
}

// runInit runs init without a terminal.
func runInit(t *testing.T, host initHost, environ []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), &console.Console{
		Process: program.Process{
			Args: append([]string{"init"}, args...), Environ: environ, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		}.WithSettings(),
		Clock: chaintest.Clock, Patience: screenTimeout, Machine: host.machine,
	})
	return result{code, stdout.String(), stderr.String()}
}

// home replaces the home in the environment by one that the machine has.
func home(environ []string, dir string) []string {
	return append(slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return strings.HasPrefix(entry, "HOME=") }), "HOME="+dir)
}

// TestInitWithoutATerminal ends with one sentence, and writes nothing.
func TestInitWithoutATerminal(t *testing.T) {
	t.Parallel()
	environ, settings := initEnvironment(t)
	got := runInit(t, mediaHost(1000), environ)
	require.Equal(t, result{program.ExitUsage, "", "starter: there is no terminal to ask on: say --yes, with flags for what the defaults do not " +
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
		got := runInit(t, initHost{uid: 1000}, environ, append(args, "--yes")...)
		require.Equal(t, program.ExitUsage, got.code, "%v %s", args, got.stderr)
		require.Contains(t, got.stderr, want)
	}
	require.NoDirExists(t, settings)
}

// TestInitYes writes files on several machines without asking. The golden files have the output.
func TestInitYes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		host initHost
		home string
		more []string
		args []string
	}{
		"bare":    {initHost{uid: 1000}, "/home/ada", nil, nil},
		"compose": {mediaHost(1000), "/home/ada", []string{"ANTHROPIC_API_KEY=sk-ant-api03-zzzzzzzzzzzzzzzz"}, nil},
		"root":    {mediaHost(0), "/root", []string{"CLAUDEOPS_MAX_TIER=3"}, nil},
		"flags": {
			mediaHost(1000), "/home/ada", nil,
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
			got := runInit(t, tt.host, environ, append(tt.args, "--yes")...)
			require.Equal(t, program.ExitOK, got.code, got.stderr)
			state := console.Variable(environ, "CLAUDEOPS_STATE_DIR")
			shown := strings.NewReplacer(filepath.Dir(settings), "CONFIG", state, "STATE").Replace(got.stdout)
			shown = regexp.MustCompile(`(?m)^(✓ (sandbox|containment|agents' user) +|✗ temporal +).*`).ReplaceAllString(shown, "$1…")
			requireGolden(t, "init-"+name, shown)
			_, err := config.Load(environ)
			require.NoError(t, err)

			again := runInit(t, tt.host, environ, "--yes")
			require.Equal(t, program.ExitOK, again.code, again.stderr)
			require.Contains(t, again.stdout, "\nNothing to change in the files: they say what you want.\n")
			require.NotContains(t, again.stdout, "+++")
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
func (s *screen) answerTo(page string) {
	s.t.Helper()
	for _, one := range initPages {
		s.sees(one.sees)
		if one.name == page {
			return
		}
		s.types(one.keys)
	}
}

// TestInitAsks answers all questions on a terminal, and answers some of them anew in another run.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	environ, settings := initEnvironment(t)
	environ = home(environ, "/home/ada")
	s := onScreenOf(t, mediaHost(1000).machine, environ, 80, 24, "init")
	for _, page := range initPages {
		s.sees(page.sees)
		s.is("init-" + page.name)
		s.types(page.keys)
	}
	s.sees("Write 3 files?")
	s.types("y")
	require.Equal(t, program.ExitOK, s.ends(), s.text())
	require.NotContains(t, s.sent(), "sk-ant-api03", "the key is not shown")
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.Equal(t, escalation.TierSafeRepair, cfg.Chain.MaxTier)
	require.Equal(t, [2]float64{5, 3}, [2]float64{cfg.Limits.DayBudgetUSD, cfg.Limits.ChainBudgetUSD})
	require.Equal(t, []string{"watchtower", "backup"}, []string{cfg.Services.Catalog.Services()[0].Name, cfg.Services.Catalog.Services()[1].Name})
	policy, err := cfg.Guard.LoadPolicy()
	require.NoError(t, err)
	require.Equal(t, []string{"uses the Compose projects in: /opt/shop, /srv/media"}, policy.Own()[1:])
	require.Equal(t, "grants: ssh (Tier 1), sudo (Tier 2)", policy.Own()[0])
	env, err := os.ReadFile(filepath.Join(settings, "claudeops.env"))
	require.NoError(t, err)
	require.Contains(t, string(env), "\nANTHROPIC_API_KEY=sk-ant-api03-zzzzzzzzzzzzzzzz\n")

	again := onScreenOf(t, mediaHost(1000).machine, environ, 52, 30, "init")
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
		again.sees(page.sees)
		if page.name != "" {
			again.is(page.name)
		}
		again.types(page.keys)
	}
	require.Equal(t, program.ExitOK, again.ends(), again.text())
	changed, err := os.ReadFile(filepath.Join(settings, "claudeops.env"))
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(env), "MAX_TIER=2", "MAX_TIER=1", 1), string(changed))
	cfg, err = config.Load(environ)
	require.NoError(t, err)
	policy, err = cfg.Guard.LoadPolicy()
	require.NoError(t, err)
	require.Equal(t, []string{"grants: ssh (Tier 1)", "uses the Compose projects in: /srv/media"}, policy.Own())
}

// TestInitIsLeft leaves at each question with Ctrl-C, and at the last one with no. Nothing is written.
func TestInitIsLeft(t *testing.T) {
	t.Parallel()
	for _, page := range append(slices.Clone(initPages), struct{ name, sees, keys string }{"write", "Write 3 files?", ""}) {
		t.Run(page.name, func(t *testing.T) {
			t.Parallel()
			environ, settings := initEnvironment(t)
			environ = home(environ, "/home/ada")
			s := onScreenOf(t, mediaHost(1000).machine, environ, 100, 30, "init")
			s.answerTo(page.name)
			s.sees(page.sees)
			s.types("\x03")
			require.Equal(t, program.ExitFailure, s.ends(), s.text())
			s.sees("left before the end: nothing was written")
			require.NoDirExists(t, settings)
		})
	}
	environ, settings := initEnvironment(t)
	s := onScreenOf(t, mediaHost(1000).machine, home(environ, "/home/ada"), 100, 30, "init")
	s.answerTo("")
	s.sees("Write 3 files?")
	s.types("n")
	require.Equal(t, program.ExitFailure, s.ends(), s.text())
	s.sees("starter: nothing was written")
	require.NoDirExists(t, settings)
}

// TestInitGoesBack goes back from an answer that is not valid, and gives both answers anew.
func TestInitGoesBack(t *testing.T) {
	t.Parallel()
	environ, _ := initEnvironment(t)
	s := onScreenOf(t, mediaHost(1000).machine, home(environ, "/home/ada"), 100, 30, "init")
	s.answerTo("budgets")
	s.types("abc\r")
	s.sees("it must be a number of dollars")
	s.types("\x1b[Z") // shift+tab
	s.sees("How far may agents go on this machine?")
	s.types("\r")
	s.sees("Most dollars in a day")
	s.types("\x15" + "7\r\r")
	s.sees("How often should Tier 1 look?")
	s.types("\x03")
	require.Equal(t, program.ExitFailure, s.ends(), s.text())
}

// TestInitForTheUnit looks at a machine of root with a unit of Claude Ops. The settings would go where the unit reads them.
func TestInitForTheUnit(t *testing.T) {
	t.Parallel()
	host := mediaHost(0)
	host.files["etc/systemd/system/claudeops-up.service"] = &fstest.MapFile{Mode: 0o644 &^ fs.ModeType}
	environ, settings := initEnvironment(t)
	s := onScreenOf(t, host.machine, home(environ, "/root"), 100, 30, "init")
	s.sees("You are root, and claudeops-up is installed: the settings go to /etc/claudeops/up.env, which it")
	s.sees(initPages[0].sees) // before the question, Ctrl-C would be a signal
	s.types("\x03")
	require.Equal(t, program.ExitFailure, s.ends())
	require.NoDirExists(t, settings)
}

// TestInitLooks sets up a machine with a claude and no Temporal. Init runs Temporal for a dry run, and explains the verdict.
func TestInitLooks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Temporal server; not with -short")
	}
	verdict := escalation.Verdict{
		Status: escalation.VerdictEscalate, Summary: "jellyfin answers 502", Services: []string{"jellyfin"},
		RecommendedTier: escalation.TierSafeRepair, Checks: []escalation.CheckResult{{Service: "jellyfin", CheckType: "http", Status: escalation.CheckDown}},
	}
	bin := t.TempDir()
	_, err := claudesim.Install(bin, claudesim.Play(claudesim.On(claudesim.Match{Model: "haiku"},
		claudesim.Bash("uptime").Saying("Looking."), claudesim.Conclude(verdict)).Named("look")))
	require.NoError(t, err)
	home := t.TempDir()
	environ := []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + home, "ANTHROPIC_API_KEY=sk-ant-x", simtest.WorkersUser}

	got := runInit(t, mediaHost(1000), environ, "--yes", "--max-tier", "2")
	require.Equal(t, program.ExitOK, got.code, got.stdout+got.stderr)
	require.Empty(t, embeddedtest.WithoutStalls(got.stderr))
	for _, want := range []string{
		"No Temporal runs here yet.", "✓ temporal ", "\n$ starter schedule create looks --every 1h --jitter 5m --dry-run\nCreated schedule looks",
		"\n$ starter run --wait --dry-run --id init-", "Tier 1 found something to repair: jellyfin answers 502\n",
		"Tier 2 would have been allowed to restart jellyfin, for at most $2.50, and each service at most 2 times in 4h.\n", "The look cost $",
		"  starter up\n", "  starter schedule update looks --dry-run=false\n",
	} {
		require.Contains(t, got.stdout, want)
	}
	again := runInit(t, mediaHost(1000), environ, "--yes", "--hours", "7-22", "--no-dry-run")
	require.Equal(t, program.ExitOK, again.code, again.stderr)
	require.Contains(t, again.stdout, "starter schedule create looks --cron '0 7-21 * * *'", "no Temporal runs")

	looks := runInit(t, mediaHost(1000), environ, "--yes", "--hours", "7-22")
	require.Equal(t, program.ExitOK, looks.code, looks.stderr)
	require.Contains(t, looks.stdout, "\n$ starter schedule update looks --cron '0 7-21 * * *'")
	kept := runInit(t, mediaHost(1000), environ, "--yes")
	require.Equal(t, program.ExitOK, kept.code, kept.stderr)
	require.NotContains(t, kept.stdout, "starter schedule update looks --cron", "nobody has said that it should change")
	require.NotContains(t, kept.stdout, "starter schedule create")
}
