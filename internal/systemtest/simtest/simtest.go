// Package simtest helps tests to run the stand-in claude and the real claude.
package simtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// Versions returns the releases against which the real CLI is tested. With the flag -claude it returns only the release
// that is nearest to the flag's CLI.
func Versions(t testing.TB) []claudesim.Version {
	t.Helper()
	return theCandidate(t).versions()
}

// Number returns the version number of the CLI that RealCLI returns. A stand-in installed by InstallAs reports the same
// number, so that the version number never counts as a difference.
func Number(t testing.TB, version claudesim.Version) string {
	t.Helper()
	return theCandidate(t).name(version)
}

// RealCLI returns the path of the real CLI of a release. With the flag -claude it returns the flag's path. If the CLI
// is not installed, the test is skipped. If CI is "true" in the environment, a missing CLI makes the test fail instead.
// With -short the test is skipped in any case.
func RealCLI(t testing.TB, version claudesim.Version) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the real CLI is slow: not with -short")
	}
	if c := theCandidate(t); c != nil {
		require.Equal(t, c.nearest, version, "-claude is held to the nearest release only")
		t.Attr(subjectAttribute, fmt.Sprintf("claude %s, by what %s does", c.number, c.nearest))
		return c.path
	}
	path := filepath.Join(ModuleRoot(t), "tools", "claude", string(version), "node_modules", ".bin", "claude")
	if _, err := os.Stat(path); err == nil {
		t.Attr(subjectAttribute, "claude "+string(version))
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

// RealEnv returns the environment for a real CLI. The CLI connects only to the API at url, keeps its files in home, and
// gives up after one retry. From this process's environment the CLI gets PATH and nothing else.
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

// ToolResult is the result of a tool call as the model reads it.
type ToolResult struct {
	ID      string `json:"tool_use_id"`
	Content any    `json:"content"`
	IsError bool   `json:"is_error"`
}

// ToolResults returns the results of the tool calls in the output of a CLI, which is a stream of events in JSON, one a
// line.
func ToolResults(output []byte) (results []ToolResult) {
	for line := range bytes.Lines(output) {
		var event struct {
			Type    string `json:"type"`
			Message struct {
				Content json.RawMessage `json:"content"`
			} `json:"message"`
		}
		var parts []ToolResult
		if json.Unmarshal(line, &event) == nil && event.Type == "user" &&
			json.Unmarshal(event.Message.Content, &parts) == nil {
			results = append(results, parts...)
		}
	}
	return results
}

// StartAPI starts a scripted API. The API is closed at the end of the test.
func StartAPI(t testing.TB, s claudesim.Scenario) *claudesim.API {
	t.Helper()
	api, err := claudesim.NewAPI(s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, api.Close()) })
	return api
}

// Install installs a stand-in in a temporary directory, and returns the program's path. The stand-in plays s. It is a
// link to the test binary.
func Install(t testing.TB, s claudesim.Scenario) string {
	t.Helper()
	path, err := claudesim.Install(t.TempDir(), s)
	require.NoError(t, err)
	return path
}

// InstallAs installs a stand-in that plays s as the given release. The stand-in reports the version that Number
// returns.
func InstallAs(t testing.TB, s claudesim.Scenario, version claudesim.Version) string {
	t.Helper()
	return Install(t, theCandidate(t).playing(s, version))
}

// OpenPolicy writes a guard policy that permits everything to every tier, and returns the policy's path. Use the policy
// in tests that do not test permissions.
func OpenPolicy(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	const tier = "{anything: true, review: {paths: ['**/compose.yaml', '**/plan.md']}}"
	text := fmt.Sprintf("version: 1\ntiers: {1: {anything: true}, 2: %s, 3: %[1]s}\n", tier)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Launches returns the starts with a prompt of the stand-in at path. path is a result of Install.
func Launches(t testing.TB, path string) []claudesim.Launch {
	t.Helper()
	launches, err := claudesim.Launches(filepath.Dir(path))
	require.NoError(t, err)
	return launches
}

// Starts returns all starts of the stand-in at path, also those without a prompt. path is a result of Install.
func Starts(t testing.TB, path string) []claudesim.Start {
	t.Helper()
	starts, err := claudesim.Starts(filepath.Dir(path))
	require.NoError(t, err)
	return starts
}

// AwaitLaunches waits until the stand-in at path has been started at least atLeast times. If that takes longer than
// limit, the test fails.
func AwaitLaunches(t testing.TB, path string, atLeast int, limit time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool {
		launches, err := claudesim.Launches(filepath.Dir(path))
		return err == nil && len(launches) >= atLeast
	}, limit, 20*time.Millisecond, "the stand-in was not started %d times", atLeast)
}

// Requests returns the model calls of the stand-in at path. path is a result of Install.
func Requests(t testing.TB, path string) []claudesim.Request {
	t.Helper()
	requests, err := claudesim.Requests(filepath.Dir(path))
	require.NoError(t, err)
	return requests
}

var escaped = regexp.MustCompile(`[^A-Za-z0-9]`)

// TranscriptPath returns the path at which the CLI stores a conversation that was started in dir. configDir is the
// configuration directory, by default HOME/.claude.
func TranscriptPath(configDir, dir, sessionID string) string {
	return filepath.Join(configDir, "projects", escaped.ReplaceAllString(dir, "-"), sessionID+".jsonl")
}

// WorkersUser is a setting that lets agents run as the user of the test. Without it, a worker of root would create a
// user for agents on this machine.
const WorkersUser = "CLAUDEOPS_AGENT_USER=none"
