package deploy_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/agent"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// read returns the text of a file. The path is relative to this directory.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// variables lists the variables in a file in the form of .env, as NAME=value. It includes variables that are commented
// out.
func variables(t *testing.T, path string) (environ []string) {
	t.Helper()
	assignment := regexp.MustCompile(`^#?([A-Z][A-Z0-9_]*)=(.*)$`)
	for line := range strings.Lines(read(t, path)) {
		if parts := assignment.FindStringSubmatch(strings.TrimSpace(line)); parts != nil {
			environ = append(environ, parts[1]+"="+strings.Trim(parts[2], `"`))
		}
	}
	require.NotEmpty(t, environ, path)
	return environ
}

// TestSettingsOfDeploymentsAreValid loads the configuration of each kind of deployment.
func TestSettingsOfDeploymentsAreValid(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]string{
		"compose":                  {".env.example"},
		"systemd, worker":          {"systemd/worker.env.example"},
		"systemd, up":              {"systemd/up.env.example"},
		"Kubernetes":               {"kubernetes/base/settings.env", "kubernetes/overlays/production/settings.env"},
		"Kubernetes, autoscaled":   {"kubernetes/base/settings.env", "kubernetes/components/autoscaling/settings.env"},
		"Kubernetes, pages":        {"kubernetes/overlays/web/settings.env"},
		"systemd, pages":           {"systemd/web.env.example"},
		"Kubernetes, another site": {"kubernetes/base/settings.env", "kubernetes/overlays/temporal-cloud/settings.env"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := []string{"HOME=" + t.TempDir()}
			for _, file := range files {
				environ = append(environ, variables(t, file)...)
			}
			_, err := config.Load(environ)
			require.NoError(t, err)
		})
	}
}

// TestDeploymentsNameSettingsThatExist checks that every variable in a file of a deployment exists, including variables
// in comments.
func TestDeploymentsNameSettingsThatExist(t *testing.T) {
	t.Parallel()
	documented := read(t, "../docs/configuration.md")
	mentioned := regexp.MustCompile(`\bCLAUDEOPS_[A-Z0-9_]*[A-Z0-9]\b`)
	looked := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".go" || entry.Name() == ".env" {
			return err
		}
		looked++
		for _, name := range mentioned.FindAllString(read(t, path), -1) {
			require.Contains(t, documented, "\n| `"+name+"` |", "%s names %s", path, name)
		}
		return nil
	}))
	require.Greater(t, looked, 20)
}

// TestUnitsDifferOnlyInWhatTheyRun checks that both units have the same hardening.
func TestUnitsDifferOnlyInWhatTheyRun(t *testing.T) {
	t.Parallel()
	units := map[string]map[string]bool{}
	for _, name := range []string{"worker", "up"} {
		units[name] = map[string]bool{}
		for line := range strings.Lines(read(t, "systemd/claudeops-"+name+".service")) {
			key, _, _ := strings.Cut(line, "=")
			if !strings.HasPrefix(line, "#") && !slices.Contains([]string{"Description", "After", "ExecStart", "EnvironmentFile"}, key) {
				units[name][line] = true
			}
		}
	}
	require.Equal(t, units["worker"], units["up"])
}

// TestUnitsLetTheWorkerDrain checks that systemd gives a worker with the default settings enough time to stop.
func TestUnitsLetTheWorkerDrain(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load([]string{"HOME=" + t.TempDir()})
	require.NoError(t, err)
	timeout := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(read(t, "systemd/claudeops-worker.service"))
	require.NotNil(t, timeout)
	seconds, err := strconv.Atoi(timeout[1])
	require.NoError(t, err)
	const spare = 5 * time.Second
	require.GreaterOrEqual(t, time.Duration(seconds)*time.Second,
		cfg.Worker.DrainTimeout+cfg.Claude.StopGrace+agent.ReportTime+spare)
}

// TestImagesHaveOurVersions checks that the versions of images are the versions with which this module is built and
// tested.
func TestImagesHaveOurVersions(t *testing.T) {
	t.Parallel()
	module, dockerfile, compose := read(t, "../go.mod"), read(t, "Dockerfile"), read(t, "compose.yaml")
	version := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(module)
		require.NotNil(t, found, pattern)
		return found[1]
	}
	require.Contains(t, dockerfile, "\nARG GO_VERSION="+version(`(?m)^go (\S+)$`)+"\n")
	server := version(`(?m)^\tgo\.temporal\.io/server v(\S+)$`)
	require.Contains(t, compose, "image: temporalio/server:"+server+"\n")
	require.Equal(t, 2, strings.Count(compose, "image: temporalio/admin-tools:"+server+"\n"))
	require.Contains(t, compose, "image: temporalio/ui:"+version(`(?m)^\tgithub\.com/temporalio/ui-server/v2 v(\S+)$`)+"\n")

	clis, err := filepath.Glob("../tools/claude/*/package.json")
	require.NoError(t, err)
	newest := slices.MaxFunc(clis, func(a, b string) int { return slices.Compare(numbers(t, a), numbers(t, b)) })
	require.Contains(t, dockerfile, "\nARG CLAUDE_VERSION="+filepath.Base(filepath.Dir(newest))+"\n")
}

// numbers returns the numbers in the name of the directory of path.
func numbers(t *testing.T, path string) (parts []int) {
	t.Helper()
	for part := range strings.SplitSeq(filepath.Base(filepath.Dir(path)), ".") {
		number, err := strconv.Atoi(part)
		require.NoError(t, err)
		parts = append(parts, number)
	}
	return parts
}

// run runs a script in this directory and returns the script's output.
func run(t *testing.T, environ []string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", arguments...)
	command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environ...)
	said, err := command.CombinedOutput()
	return string(said), err
}

func TestWithSecrets(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for name, content := range map[string]string{
		"API_KEY": "a b'\"$c\n", "EMPTY": "", "not-a-name": "x", "1ST": "x", "..data": "x",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600))
	}
	const printed = `echo "$API_KEY|$EMPTY|$GIVEN|$1|$(env | grep -c '=x')"`
	said, err := run(t, []string{"GIVEN=kept"}, "docker/with-secrets.sh", directory, "sh", "-c", printed, "sh", "an argument")
	require.NoError(t, err, said)
	require.Equal(t, "a b'\"$c||kept|an argument|0\n", said)

	said, err = run(t, nil, "docker/with-secrets.sh", filepath.Join(directory, "missing"), "echo", "runs")
	require.NoError(t, err, said)
	require.Equal(t, "runs\n", said)

	require.NoError(t, os.Mkdir(filepath.Join(directory, "A_DIRECTORY"), 0o700)) // cannot be read as a file
	said, err = run(t, nil, "docker/with-secrets.sh", directory, "echo", "runs")
	require.Error(t, err)
	require.NotContains(t, said, "runs")
}

func TestComposeSecrets(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "secrets")
	said, err := run(t, nil, "compose/secrets.sh", directory)
	require.Error(t, err)
	require.Contains(t, said, "set ANTHROPIC_API_KEY")

	_, err = run(t, []string{"ANTHROPIC_API_KEY=first"}, "compose/secrets.sh", directory)
	require.NoError(t, err)
	first := secretsIn(t, directory)
	for _, named := range regexp.MustCompile(`\{file: \./secrets/(\w+)\}`).FindAllStringSubmatch(read(t, "compose.yaml"), -1) {
		require.NotEmpty(t, first[named[1]], named[1])
		delete(first, named[1])
	}
	require.Empty(t, slices.Collect(maps.Keys(first)), "secrets that compose.yaml does not use")

	first = secretsIn(t, directory)
	require.Equal(t, "first", first["anthropic_api_key"])
	require.Contains(t, first["database_url"], ":"+first["db_password"]+"@")
	_, err = run(t, []string{"ANTHROPIC_API_KEY=second"}, "compose/secrets.sh", directory)
	require.NoError(t, err)
	require.Equal(t, first, secretsIn(t, directory), "existing secrets stay")

	info, err := os.Stat(directory)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
}

// secretsIn returns the contents of the files in a directory.
func secretsIn(t *testing.T, directory string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	contents := map[string]string{}
	for _, entry := range entries {
		contents[entry.Name()] = read(t, filepath.Join(directory, entry.Name()))
	}
	return contents
}
