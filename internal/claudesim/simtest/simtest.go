// Package simtest helps tests to run the stand-in claude and the real one.
package simtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// Versions are the releases of the real CLI that tests run.
func Versions() []claudesim.Version {
	return []claudesim.Version{claudesim.VersionOld, claudesim.VersionNew}
}

// RealCLI returns the path of the real CLI of a release. Where it is not installed, the
// test fails if CI is "true" in the environment and is skipped otherwise; with -short it
// is always skipped.
func RealCLI(t testing.TB, version claudesim.Version) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the real CLI is slow: not with -short")
	}
	path := filepath.Join(ModuleRoot(t), "tools", "claude", string(version), "node_modules", ".bin", "claude")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("the real CLI %s is not installed; run make tools", version)
	}
	t.Skipf("the real CLI %s is not installed; run make tools", version)
	return ""
}

// ModuleRoot returns the directory of go.mod.
func ModuleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, dir, parent, "no go.mod above the working directory")
		dir = parent
	}
}

// RealEnv returns the environment in which the real CLI talks to the API at url and to
// nobody else, keeps its files under home, and gives up after one retry. It holds
// nothing of this process's environment but PATH.
func RealEnv(home, url string) map[string]string {
	return map[string]string{
		"PATH":                    os.Getenv("PATH"),
		"HOME":                    home,
		"ANTHROPIC_BASE_URL":      url,
		"ANTHROPIC_API_KEY":       "not-a-key",
		"CLAUDE_CODE_MAX_RETRIES": "1",
		"DISABLE_TELEMETRY":       "1",
		"DISABLE_AUTOUPDATER":     "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
	}
}

// StartAPI starts a scripted API that ends with the test.
func StartAPI(t testing.TB, s claudesim.Scenario) *claudesim.API {
	t.Helper()
	api, err := claudesim.NewAPI(s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	return api
}

// Install installs a stand-in that plays s into a directory of the test's own, and
// returns the path of the program. The test binary's TestMain must begin with
// claudesim.Invoked, as claudesim.Install says.
func Install(t testing.TB, s claudesim.Scenario) string {
	t.Helper()
	path, err := claudesim.Install(t.TempDir(), s)
	require.NoError(t, err)
	return path
}

// Launches returns the starts of the stand-in at path, as Install returned it.
func Launches(t testing.TB, path string) []claudesim.Launch {
	t.Helper()
	launches, err := claudesim.Launches(filepath.Dir(path))
	require.NoError(t, err)
	return launches
}

// AwaitLaunches returns when the stand-in at path was started at least that often.
func AwaitLaunches(t testing.TB, path string, atLeast int, limit time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool {
		launches, err := claudesim.Launches(filepath.Dir(path))
		return err == nil && len(launches) >= atLeast
	}, limit, 20*time.Millisecond, "the stand-in was not started %d times", atLeast)
}

// Requests returns the model calls of the stand-in at path, as Install returned it.
func Requests(t testing.TB, path string) []claudesim.Request {
	t.Helper()
	requests, err := claudesim.Requests(filepath.Dir(path))
	require.NoError(t, err)
	return requests
}

var escaped = regexp.MustCompile(`[^A-Za-z0-9]`)

// TranscriptPath returns where the CLI keeps a conversation that was started in dir with
// the configuration directory configDir, which is HOME/.claude by default.
func TranscriptPath(configDir, dir, sessionID string) string {
	return filepath.Join(configDir, "projects", escaped.ReplaceAllString(dir, "-"), sessionID+".jsonl")
}
