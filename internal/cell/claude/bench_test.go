package claude_test

import (
	"context"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/cell/proxy"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// apiKey is the credential in all tests. Tests search for this text in places where it must not be.
const apiKey = "sk-test-4f0c2b7a9d"

// backend is a kind of `claude` on which the contract is tested: the stand-in or the real CLI.
type backend struct {
	version claudesim.Version
	real    bool
	// proxied puts a proxy between the CLI and the API, as a worker with a key does.
	proxied bool
}

func (b backend) String() string {
	switch {
	case b.proxied:
		return "real-proxied"
	case b.real:
		return "real"
	default:
		return "stand-in"
	}
}

// bench is the set-up of one test: a backend, an API that plays one scenario, and separate directories.
type bench struct {
	backend
	cli       *claude.CLI
	dir       string // working directory
	configDir string
	requests  func() []claudesim.Request
	proxy     *proxy.Proxy // nil without a proxy
	// budget is the proxy's limit on the cost of each invocation, in US dollars; 0 is no limit.
	budget float64
}

// newBench sets up a bench. adjust, if not nil, changes the options.
func newBench(t testing.TB, b backend, scenario claudesim.Scenario, adjust func(*claude.Options)) *bench {
	t.Helper()
	made := &bench{backend: b, dir: t.TempDir(), configDir: filepath.Join(t.TempDir(), "config")}
	environ := map[string]string{"PATH": os.Getenv("PATH"), "HOME": operatorsHome(t), "ANTHROPIC_API_KEY": apiKey}
	var path string
	if b.real {
		path = simtest.RealCLI(t, b.version)
		api := simtest.StartAPI(t, scenario)
		environ["ANTHROPIC_BASE_URL"] = api.URL()
		made.requests = api.Requests
	} else {
		path = simtest.InstallAs(t, scenario, b.version)
		made.requests = func() []claudesim.Request { return simtest.Requests(t, path) }
	}
	options := claude.Options{Path: path, ConfigDir: made.configDir, MaxRetries: 1, Containment: claude.Containment(*containment)}
	for name, value := range environ {
		options.Environ = append(options.Environ, name+"="+value)
	}
	if adjust != nil {
		adjust(&options)
	}
	cli, err := claude.Locate(t.Context(), options)
	require.NoError(t, err)
	require.Equal(t, simtest.Number(t, b.version), cli.Version())
	made.cli = cli
	if b.proxied {
		made.proxy = startProxy(t, options)
	}
	return made
}

// startProxy starts a proxy that calls the API with the credentials of options.
func startProxy(t testing.TB, options claude.Options) *proxy.Proxy {
	t.Helper()
	access, found := claude.FindAccess(options)
	require.True(t, found)
	upstream, err := url.Parse(access.BaseURL)
	require.NoError(t, err)
	started, err := proxy.Start(t.Context(), proxy.Options{Upstream: upstream, Header: access.Header, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, started.Close()) })
	return started
}

// start runs an invocation. With a proxy the invocation has its own key. start then checks that the proxy counted the
// same cost as the CLI reports, if the report is complete.
func (b *bench) start(
	ctx context.Context, t *testing.T, invocation claude.Invocation, progress func(claude.Progress),
) (claude.Result, error) {
	t.Helper()
	if b.proxy == nil {
		return b.cli.Run(ctx, invocation, progress)
	}
	result, count, err := b.startCounted(ctx, invocation, progress)
	switch {
	case result.CostEstimated || count.Partial > 0:
	default:
		require.InDelta(t, result.CostUSD, count.CostUSD, 1e-9, "the CLI and the proxy")
	}
	return result, err
}

// startCounted runs an invocation with its own key for the proxy. It also returns the usage that the proxy counted.
func (b *bench) startCounted(
	ctx context.Context, invocation claude.Invocation, progress func(claude.Progress),
) (claude.Result, proxy.Count, error) {
	lease := b.proxy.Open(proxy.Session{
		ID:        invocation.SessionID,
		Permits:   func(asked string) bool { return b.cli.Permits(invocation.Model, asked) },
		BudgetUSD: b.budget,
		Price: func(model string, used proxy.Usage) float64 {
			return b.cli.Price(model, claude.CallUsage{
				Tokens:  claude.Tokens{Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheCreation: used.CacheCreation},
				OneHour: used.Creation.OneHour, WebSearches: used.ServerTools.WebSearches,
			})
		},
	})
	invocation.API = &claude.Endpoint{URL: b.proxy.URL(), Key: lease.Key()}
	result, err := b.cli.Run(ctx, invocation, progress)
	return result, lease.Close(), err
}

// operatorsHome returns a HOME whose shell start-up files set variables that an agent must not get.
func operatorsHome(t testing.TB) string {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{".bashrc", ".bash_profile", ".profile", ".zshenv"} {
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte("export FROM_STARTUP_FILE=hunter2\n"), 0o600))
	}
	return home
}

// newBenchOf sets up a bench with the stand-in at path.
func newBenchOf(t *testing.T, path string) *bench {
	t.Helper()
	made := &bench{
		backend:   backend{version: claudesim.VersionNew},
		dir:       t.TempDir(),
		configDir: filepath.Join(t.TempDir(), "config"),
		requests:  func() []claudesim.Request { return simtest.Requests(t, path) },
	}
	cli, err := claude.Locate(t.Context(), claude.Options{
		Path:      path,
		ConfigDir: made.configDir,
		Environ:   []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=" + apiKey},
	})
	require.NoError(t, err)
	made.cli = cli
	return made
}

// invocation returns an invocation that starts a new conversation with prompt. It permits a few harmless commands.
func (b *bench) invocation(prompt string) claude.Invocation {
	return claude.Invocation{
		SessionID:    uuid.NewString(),
		Prompt:       prompt,
		Model:        "haiku",
		Tools:        []string{"Bash"},
		AllowedTools: []string{"Bash(echo:*)", "Bash(./slow.sh:*)"},
		Dir:          b.dir,
		Limits:       claude.Limits{Wall: time.Minute, FirstByte: 30 * time.Second, Grace: 5 * time.Second},
	}
}

// run runs an invocation that must succeed.
func (b *bench) run(t *testing.T, invocation claude.Invocation) claude.Result {
	t.Helper()
	result, err := b.start(t.Context(), t, invocation, nil)
	require.NoError(t, err)
	require.Equal(t, 0, result.ExitCode)
	require.Equal(t, b.cli.Version(), result.CLIVersion)
	require.Equal(t, invocation.SessionID, result.SessionID)
	require.Positive(t, result.Duration)
	return result
}

// fail runs an invocation that must fail with an error of kind.
func (b *bench) fail(t *testing.T, kind claude.ErrorKind, invocation claude.Invocation) (claude.Result, *claude.Error) {
	t.Helper()
	return b.failIn(t, t.Context(), kind, invocation)
}

func (b *bench) failIn(
	t *testing.T, ctx context.Context, kind claude.ErrorKind, invocation claude.Invocation,
) (claude.Result, *claude.Error) {
	t.Helper()
	result, err := b.start(ctx, t, invocation, nil)
	var failed *claude.Error
	require.ErrorAs(t, err, &failed, "%+v", result)
	require.Equal(t, kind, failed.Kind, "%s\n%s", failed.Message, failed.Stderr)
	require.NotEmpty(t, failed.Message)
	require.NotContains(t, failed.Message, "\n")
	return result, failed
}

// tempo returns the time that this backend needs for one step on a busy machine.
func (b *bench) tempo() time.Duration {
	if b.real {
		return 4 * time.Second
	}
	return time.Second
}

// transcript returns the transcript of a conversation.
func (b *bench) transcript(t *testing.T, sessionID string) []byte {
	t.Helper()
	path, err := b.cli.TranscriptPath(b.dir, sessionID)
	require.NoError(t, err)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

// slowCommand writes the script slow.sh to the working directory. The script creates a file and then takes a minute.
// slowCommand returns the path of that file.
func (b *bench) slowCommand(t *testing.T) (started string) {
	t.Helper()
	started = filepath.Join(b.dir, "started")
	// The script does not use $$, because in a PID namespace it is not the process number on the host. The script
	// renames the file when it is complete, because a test may end the script as soon as the file exists.
	script := "#!/bin/sh\nread pid rest </proc/self/stat || pid=$$\necho $pid >started.new && mv started.new " + started + "\nexec sleep 60\n"
	require.NoError(t, process.WriteProgram(filepath.Join(b.dir, "slow.sh"), []byte(script)))
	return started
}
