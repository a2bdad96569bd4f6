package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claude"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/claudesim/simtest"
	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/process"
)

// secret stands in a file that no rule lets an agent read, and canary in those that no
// rule lets it write.
const (
	secret = "OUTSIDESECRET"
	canary = "CANARY"
)

// programs are the programs that the rules are about. What stands in for them says that it
// ran, and does nothing.
var programs = []string{
	"docker", "kubectl", "helm", "systemctl", "journalctl", "gh", "apprise", "ansible-playbook", "ping", "dig", "git", "ss", "sudo",
}

const ran = "RAN "

// site is a host with a configuration of Claude Ops, its defaults.
type site struct {
	root    string
	environ []string
	cfg     config.Config
}

func newSite(t *testing.T) site {
	t.Helper()
	root := t.TempDir()
	bin := filepath.Join(root, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	for _, tool := range programs {
		script := "#!/bin/sh\necho " + ran + tool + "\n"
		require.NoError(t, process.WriteProgram(filepath.Join(bin, tool), []byte(script)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "outside.txt"), []byte(secret+"\n"), 0o600))
	environ := []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + root, "ANTHROPIC_API_KEY=key-" + secret, "CLAUDEOPS_STATE_DIR=" + filepath.Join(root, "state"),
	}
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.NoError(t, cfg.MakeDirs())
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Claude.WorkDir, "inside.txt"), []byte("INSIDE\n"), 0o600))
	return site{root: root, environ: environ, cfg: cfg}
}

// answers lets an agent of tier make the calls, one after the other in one session of the
// real CLI, and returns what it is told to each.
func (s site) answers(t *testing.T, v claudesim.Version, tier escalation.Tier, calls []claudesim.Reply) []string {
	t.Helper()
	api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(append(calls, claudesim.Say("done"))...)))
	cli, err := claude.Locate(t.Context(), claude.Options{
		Path: simtest.RealCLI(t, v), Environ: append(s.environ, "ANTHROPIC_BASE_URL="+api.URL()), ConfigDir: s.cfg.Claude.ConfigDir,
	})
	require.NoError(t, err)
	rules := s.cfg.Policy().For(tier)
	_, err = cli.Run(t.Context(), claude.Invocation{
		SessionID: uuid.NewString(), Prompt: "go", Model: "haiku", Dir: s.cfg.Claude.WorkDir,
		Tools: rules.Tools, AllowedTools: rules.AllowedTools, DisallowedTools: rules.DisallowedTools,
		Limits: claude.Limits{Wall: 10 * time.Minute},
	}, nil)
	require.NoError(t, err)
	requests := api.Requests()
	require.NotEmpty(t, requests)
	results := requests[len(requests)-1].ToolResults()
	require.Len(t, results, len(calls))
	return results
}

// bash returns the command lines as calls. In them ROOT stands for the host's directory
// and PID for a process that knows secrets.
func (s site) bash(lines []string) []claudesim.Reply {
	var calls []claudesim.Reply
	names := strings.NewReplacer("ROOT", s.root, "PID", strconv.Itoa(os.Getpid()))
	for _, line := range lines {
		calls = append(calls, claudesim.Bash(names.Replace(line)))
	}
	return calls
}

// files returns every file of the host but those of the CLI, with its content.
func (s site) files(t *testing.T) map[string]string {
	t.Helper()
	files, host := map[string]string{}, os.DirFS(s.root)
	require.NoError(t, fs.WalkDir(host, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case filepath.Join(s.root, path) == s.cfg.Claude.ConfigDir:
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(host, path)
		files[filepath.Join(s.root, path)] = string(text)
		return err
	}))
	return files
}

// denied reports whether an answer says that the call was refused.
func denied(answer string) bool {
	return strings.Contains(answer, "Permission to use") && strings.Contains(answer, "denied")
}

// decisions maps command lines to what the CLI decides about them.
type decisions map[string]string

func decision(denied bool) string {
	if denied {
		return "refused"
	}
	return "granted"
}

// compareDecisions holds what the CLI decides about command lines to what the rules promise.
func (s site) compareDecisions(t *testing.T, v claudesim.Version, tier escalation.Tier, granted, refused []string) {
	t.Helper()
	lines := slices.Concat(granted, refused)
	expected, got := decisions{}, decisions{}
	for i, answer := range s.answers(t, v, tier, s.bash(lines)) {
		expected[lines[i]] = decision(i >= len(granted))
		got[lines[i]] = decision(denied(answer))
		if strings.Contains(answer, secret) {
			got[lines[i]] += ", and told the secret"
		}
	}
	require.Len(t, expected, len(lines), "a command line is listed twice")
	simtest.Compare(t, 0, expected, got)
}

// TestContractObserving holds the default rules of tier 1, which are those of every tier
// in a dry run, to their promise on the real CLI: what is needed to look works, and
// nothing changes.
func TestContractObserving(t *testing.T) {
	t.Parallel()
	testDefaultRules(t, escalation.TierObserve, observingGranted, observingRefused, refusedByNew)
}

// TestContractRepairing is the same for tier 2: repairs work, and their options do not
// reach beyond them.
func TestContractRepairing(t *testing.T) {
	t.Parallel()
	testDefaultRules(t, escalation.TierSafeRepair, repairingGranted, repairingRefused, repairingRefusedByNew)
}

// testDefaultRules tries commands under a tier's default rules on every release of the real
// CLI. What is in byNew is refused by the newer release only. No file may change.
func testDefaultRules(t *testing.T, tier escalation.Tier, granted, refused, byNew []string) {
	t.Helper()
	for _, v := range simtest.Versions(t) {
		t.Run(simtest.Number(t, v), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			before := s.files(t)
			refused := refused
			if v == claudesim.VersionNew {
				refused = slices.Concat(refused, byNew)
			}
			s.compareDecisions(t, v, tier, granted, refused)
			simtest.Compare(t, 0, before, s.files(t))
		})
	}
}

// TestContractPorts adds the rules about the ports of a server to those of tier 1, as a worker beside that
// server does.
func TestContractPorts(t *testing.T) {
	t.Parallel()
	for _, v := range simtest.Versions(t) {
		t.Run(simtest.Number(t, v), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.cfg.Tiers.Tier1.DisallowedTools = append(s.cfg.Tiers.Tier1.DisallowedTools, config.PortRules(43117, 9)...)
			s.compareDecisions(t, v, escalation.TierObserve,
				[]string{"curl -sS http://127.0.0.1:1/43117", "curl -sS http://127.0.0.1:43116/"},
				[]string{
					"curl -sS http://127.0.0.1:43117/", "curl -sS 'http://[::1]:43117'", "curl -sS http://localhost:0043117/a",
					"curl -sS http://127.0.0.1:9/", "ping -c 1 http://0:43117",
				})
		})
	}
}

// TestContractWriting holds the file tools of tier 2 to the working directory, and away
// from the files in it that are commands in disguise.
func TestContractWriting(t *testing.T) {
	t.Parallel()
	for _, v := range simtest.Versions(t) {
		t.Run(simtest.Number(t, v), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			work := s.cfg.Claude.WorkDir
			before := s.files(t)
			write := func(path string) claudesim.Reply {
				return claudesim.Call("Write", map[string]any{"file_path": path, "content": canary})
			}
			calls := []claudesim.Reply{write(filepath.Join(work, "app.conf"))}
			for _, name := range []string{
				"compose.yaml", "docker-compose.override.yml", "sub/compose.yml", ".env", ".git/hooks/pre-commit", "sub/.git/config", "sub/.git", "../x", "../../x", ".claudeops", ".claudeops/chain/cooldown.json",
			} {
				calls = append(calls, write(filepath.Join(work, filepath.FromSlash(name))))
			}
			calls = append(calls, claudesim.Call("Read", map[string]any{"file_path": filepath.Join(s.root, "outside.txt")}))
			for _, answer := range s.answers(t, v, escalation.TierSafeRepair, calls) {
				require.NotContains(t, answer, secret)
			}
			before[filepath.Join(work, "app.conf")] = canary
			simtest.Compare(t, 0, before, s.files(t))
		})
	}
}
