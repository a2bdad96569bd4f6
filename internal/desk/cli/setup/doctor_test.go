package setup

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/claudesim"
	webaccess "github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// TestDoctorWarnsOfAnUntestedVersionOnce covers versions between, above and below the tested ones.
func TestDoctorWarnsOfAnUntestedVersionOnce(t *testing.T) {
	t.Parallel()
	for claimed, warning := range map[string]string{
		"2.1.285": "claude 2.1.285 is not a tested version; it is driven like 2.1.286, the nearest that is",
		"2.1.286": "",
		"2.1.300": "claude 2.1.300 is not a tested version; it is driven like 2.1.286, the nearest that is",
		"2.1.329": "",
		"2.1.332": "",
		"2.1.333": "claude 2.1.333 is not a tested version; it is driven like 2.1.332, the nearest that is",
		"3.0.0":   "claude 3.0.0 is not a tested version; it is driven like 2.1.332, the nearest that is",
	} {
		t.Run(claimed, func(t *testing.T) {
			t.Parallel()
			scenario := claudesim.Play(claudesim.Always(claudesim.Say("fine")))
			scenario.ClaimedVersion = claimed
			path, err := claudesim.Install(t.TempDir(), scenario)
			require.NoError(t, err)
			for _, format := range []string{"text", "json"} {
				got := starter(t, clitest.Environment(t, "CLAUDEOPS_CLAUDE="+path), "doctor", "-o", format)
				require.Contains(t, got.Stdout, "version "+claimed+" at ")
				printed := got.Stdout + got.Stderr
				if format == "text" {
					require.Equal(t, warning == "", strings.Contains(got.Stdout, "✓ claude "), "a tick is for what was tested")
				}
				if warning == "" {
					require.NotContains(t, printed, "tested version")
					continue
				}
				require.Equal(t, 1, strings.Count(printed, "tested version"), printed)
				require.Equal(t, 1, strings.Count(printed, warning), printed)
			}
		})
	}
}

// TestDoctorRefusesAnOldCLI covers a CLI without the options that agents need.
func TestDoctorRefusesAnOldCLI(t *testing.T) {
	t.Parallel()
	scenario := claudesim.Play(claudesim.Always(claudesim.Say("fine")))
	scenario.ClaimedVersion = "1.0.50"
	path, err := claudesim.Install(t.TempDir(), scenario)
	require.NoError(t, err)
	got := starter(t, clitest.Environment(t, "CLAUDEOPS_CLAUDE="+path), "doctor")
	require.Regexp(t, `✗ claude +claude 1\.0\.50 at .* is too old: update it to 2\.1\.332`, got.Stdout)
}

// TestDoctorNamesProgramsThatAgentsAreDenied has docker in a directory of which the policy grants no program.
func TestDoctorNamesProgramsThatAgentsAreDenied(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "unknown"), []byte("#!/bin/sh\n"), 0o700))
	got := starter(t, clitest.Environment(t, "PATH="+bin+":/usr/bin:/bin"), "doctor")
	require.Contains(t, got.Stdout, "agents are denied "+bin+"/docker, because the policy grants programs of other directories only: put the")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nextends: default\ndirectories: ["+bin+"]\n"), 0o600))
	got = starter(t, clitest.Environment(t, "PATH="+bin+":/usr/bin:/bin", "CLAUDEOPS_POLICY_FILE="+file), "doctor")
	require.Regexp(t, `✓ programs +those of the policy that agents find are in its directories`, got.Stdout, "the remedy works")
}

// TestDoctorTriesTheSandbox checks what `doctor` reports about the sandbox of each tier, for each value of
// CLAUDEOPS_SANDBOX.
func TestDoctorTriesTheSandbox(t *testing.T) {
	t.Parallel()
	got := starter(t, clitest.Environment(t, "CLAUDEOPS_SANDBOX=auto"), "doctor")
	require.Regexp(t, `[✓!] sandbox +(full|user only|kernel only|guard only) \(tier 1: (landlock \(ABI \d+|none: ).*; tier 2: (landlock \(ABI \d+|none: )`, got.Stdout)
	got = starter(t, clitest.Environment(t, "CLAUDEOPS_SANDBOX=off"), "doctor")
	require.Regexp(t, `[✓!] sandbox +(full|user only|kernel only|guard only) \(tier 1: off; tier 2: off`, got.Stdout)
	got = starter(t, clitest.Environment(t, "CLAUDEOPS_SANDBOX=require-kernel", "CLAUDEOPS_CONTAINMENT=group"), "doctor")
	require.Regexp(t, `✗ sandbox +the agent's sandbox is required, and not to be had here: .*; set CLAUDEOPS_SANDBOX=auto`, got.Stdout)
	got = starter(t, clitest.Environment(t, "CLAUDEOPS_SANDBOX=require-full"), "doctor")
	require.Regexp(t, `✗ sandbox +CLAUDEOPS_SANDBOX=require-full: agents would run as the worker's user`, got.Stdout)
}

// TestDoctorChecksTheServicesFile checks what `doctor` reports without a services file, with one, and with a mistake in
// it.
func TestDoctorChecksTheServicesFile(t *testing.T) {
	t.Parallel()
	got := starter(t, clitest.Environment(t), "doctor")
	require.Regexp(t, `✓ services +none are described: CLAUDEOPS_SERVICES_FILE is not set\n`, got.Stdout)
	require.Regexp(t, `✓ alerts +no source starts chains`, got.Stdout)

	file := filepath.Join(t.TempDir(), "services.yaml")
	environ := clitest.Environment(t, "CLAUDEOPS_SERVICES_FILE="+file)
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nservices: [{name: web}, {name: db}]\n"), 0o600))
	require.Regexp(t, `✓ services +2 described in `+file+`\n`, starter(t, environ, "doctor").Stdout)
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nservices: [{name: web}, {name: Web}]\n"), 0o600))
	got = starter(t, environ, "doctor")
	require.Regexp(t, `✗ configuration .*`+file+`"; it must name a list of services that can be used: service "Web": "Web" is already a name`, got.Stdout)
}

// TestDoctorSaysWhereNobodyMayCommit checks that doctor names each directory whose sessions may not commit, with the
// reason.
func TestDoctorSaysWhereNobodyMayCommit(t *testing.T) {
	t.Parallel()
	const check, required = `worktrees +`, "CLAUDEOPS_REVIEW_CHANGES=required"
	repository := func(prepare ...string) string {
		dir := t.TempDir()
		for _, line := range append([]string{"init --quiet", "-c user.name=a -c user.email=a@b commit --quiet --allow-empty -m first"}, prepare...) {
			output, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, strings.Fields(line)...)...).CombinedOutput()
			require.NoError(t, err, string(output))
		}
		return dir
	}
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"advisory":   {[]string{"CLAUDEOPS_WORKTREES=off"}, `✓ ` + check + `sessions that repair in a repository get a worktree\n`},
		"a worktree": {[]string{required, "CLAUDEOPS_WORK_DIR=" + repository("remote add origin /elsewhere")}, `✓ ` + check},
		"no remote": {
			[]string{required, "CLAUDEOPS_WORK_DIR=" + repository()}, `! ` + check + `.* stays on its branch, because the repository has no remote origin`,
		},
		"off": {[]string{required, "CLAUDEOPS_WORKTREES=off"}, `! ` + check + `.*sessions may not commit in .*: worktrees are off`},
		"a filter": {
			[]string{required, "CLAUDEOPS_WORK_DIR=" + repository("config filter.evil.clean cat")}, `! ` + check + `.*sessions may not commit in .*filter\.evil`,
		},
		"a branch in the way": {
			[]string{required, "CLAUDEOPS_WORK_DIR=" + repository("branch claudeops")}, `! ` + check + `.*sessions may not commit in .* has a branch claudeops`,
		},
		"no repository": {[]string{required, "CLAUDEOPS_WORK_DIR=" + t.TempDir()}, `! ` + check + `.*sessions may not commit in `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environ := append([]string{"PATH=" + os.Getenv("PATH")}, c.environ...)
			require.Regexp(t, c.want, starter(t, clitest.Environment(t, environ...), "doctor").Stdout)
		})
	}
}

func TestDoctorSaysHowToMend(t *testing.T) {
	t.Parallel()
	got := starter(t, clitest.Environment(t), "doctor")
	require.Equal(t, program.ExitFailure, got.Code)
	require.Contains(t, got.Stdout, "✓ state directory")
	require.Regexp(t, "✓ database +none yet; the first worker makes /.*/claudeops.db", got.Stdout)
	require.Regexp(t, "✓ prices +those of the models are known", got.Stdout)
	require.Contains(t, got.Stdout, "✓ containment")
	require.Regexp(t, "✗ claude .*install the Claude Code CLI, or set CLAUDEOPS_CLAUDE to its path", got.Stdout)
	require.Regexp(t, "✗ credentials .*set ANTHROPIC_API_KEY, or CLAUDEOPS_CLAUDE_CONFIG_DIR=login", got.Stdout)
	require.Contains(t, got.Stdout, "✗ temporal")
	require.Contains(t, got.Stderr, "3 of 20 checks failed")

	got = starter(t, clitest.Environment(t, "CLAUDEOPS_TIER2_MODEL=gpt-9"), "doctor")
	require.Regexp(t, "✓ variables +agents. programs get none", got.Stdout)
	require.Regexp(t, "! prices +gpt-9: not known, so the CLI takes those of another model; costs are guesses", got.Stdout)
	got = starter(t, clitest.Environment(t, "CLAUDEOPS_PASS_ENV=FOO,GH_TOKEN,BAR=mytool", "FOO=1", "GH_TOKEN=2", "BAR=3"), "doctor")
	require.Regexp(t, "! variables +no program gets FOO: name one in CLAUDEOPS_PASS_ENV, as in FOO=PROGRAM, or write FOO=claude", got.Stdout)
	got = starter(t, clitest.Environment(t, "CLAUDE_CODE_USE_BEDROCK=1"), "doctor")
	require.Regexp(t, "! credentials +agents use CLAUDE_CODE_USE_BEDROCK themselves, and their commands can read it", got.Stdout)
	got = starter(t, clitest.Environment(t, "ANTHROPIC_API_KEY=sk-secret", "ANTHROPIC_BASE_URL=gateway"), "doctor")
	require.Regexp(t, `✗ credentials +ANTHROPIC_BASE_URL is "gateway"`, got.Stdout)

	require.Contains(t, got.Stdout, "valid; all of it is from the environment")
	require.Regexp(t, `✓ policy +the built-in one\n`, got.Stdout)
	dir := t.TempDir()
	written := func(name, text string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	settings := written("claudeops.env", "CLAUDEOPS_POLICY_FILE="+
		written("own.yaml", "version: 1\nextends: default\nwithout: {programs: [nl]}\n")+"\n")
	got = starter(t, clitest.Environment(t, "CLAUDEOPS_ENV_FILE="+settings), "doctor")
	require.Contains(t, got.Stdout, "valid; the file of settings is "+settings)
	require.Contains(t, got.Stdout, "the built-in one, changed by "+dir+"/own.yaml; `claudeops policy explain` says how")
	copied := written("copy.yaml", strings.ReplaceAll(string(deploy.Policy), "  - {program: mdadm,", "  - {program: raid,"))
	got = starter(t, clitest.Environment(t, "CLAUDEOPS_POLICY_FILE="+copied), "doctor")
	require.Contains(t, got.Stdout, copied+", which lacks rules of the built-in one (1, such as never: mdadm --zero-superblock|--stop|-S): keep only your changes in it")

	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	got = starter(t, clitest.Environment(t, "CLAUDEOPS_STATE_DIR="+filepath.Join(blocked, "state")), "doctor", "-o", "json")
	require.Equal(t, program.ExitFailure, got.Code)
	var findings []finding
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &findings))
	require.Equal(t, "state directory", findings[3].Check)
	require.False(t, findings[3].OK)
	require.Contains(t, findings[3].Detail, "CLAUDEOPS_STATE_DIR")
}

// TestDoctorNamesClosedHooks covers a source without a token, one with a token of another role, and one whose secret is
// empty.
func TestDoctorNamesClosedHooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	services, secret := filepath.Join(dir, "services.yaml"), filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(services, []byte("version: 1\nservices: [{name: shop}]\nalerts: {sources: ["+
		"{name: am, kind: alertmanager}, {name: kuma, kind: uptime-kuma}, {name: grafana, kind: grafana, secret_file: secret}]}\n"), 0o600))
	require.NoError(t, os.WriteFile(secret, []byte("a long secret"), 0o600))
	file := filepath.Join(dir, "tokens.json")
	environ := clitest.Environment(t, "CLAUDEOPS_SERVICES_FILE="+services, "CLAUDEOPS_WEB_TOKENS_FILE="+file)
	tokens := webaccess.OpenTokens(file)
	for name, role := range map[string]webaccess.Role{"grafana": webaccess.Alert, "kuma": webaccess.View} {
		_, err := tokens.Create(webaccess.Token{Name: name, Roles: []webaccess.Role{role}})
		require.NoError(t, err)
	}
	require.Contains(t, compact(starter(t, environ, "doctor").Stdout), "closed, because no token has the name: am, kuma; make one with `claudeops web token create am --role alert`")
	for _, name := range []string{"am", "kuma"} {
		_ = tokens.Revoke(name) // one has none
		_, err := tokens.Create(webaccess.Token{Name: name, Roles: []webaccess.Role{webaccess.Alert}})
		require.NoError(t, err)
	}
	require.Contains(t, compact(starter(t, environ, "doctor").Stdout), "alerts 3 sources can start chains")
	require.NoError(t, os.WriteFile(secret, nil, 0o600))
	require.Contains(t, compact(starter(t, environ, "doctor").Stdout), "✗ alerts source grafana: the secret in")
}

// compact returns text with single blanks.
func compact(text string) string { return strings.Join(strings.Fields(text), " ") }
