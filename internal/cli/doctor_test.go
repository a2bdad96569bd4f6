package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// TestDoctorWarnsOfAnUntestedVersionOnce covers versions between, above and below the tested ones.
func TestDoctorWarnsOfAnUntestedVersionOnce(t *testing.T) {
	t.Parallel()
	for claimed, warning := range map[string]string{
		"2.1.196": "claude 2.1.196 is not a tested version; it is driven like 2.1.197, the nearest that is",
		"2.1.197": "",
		"2.1.300": "claude 2.1.300 is not a tested version; it is driven like 2.1.329, the nearest that is",
		"2.1.329": "",
		"2.1.330": "",
		"2.1.331": "claude 2.1.331 is not a tested version; it is driven like 2.1.330, the nearest that is",
		"3.0.0":   "claude 3.0.0 is not a tested version; it is driven like 2.1.330, the nearest that is",
	} {
		t.Run(claimed, func(t *testing.T) {
			t.Parallel()
			scenario := claudesim.Play(claudesim.Always(claudesim.Say("fine")))
			if claimed == "2.1.196" || claimed == "2.1.197" {
				scenario = scenario.As(claudesim.VersionOld)
			}
			scenario.ClaimedVersion = claimed
			path, err := claudesim.Install(t.TempDir(), scenario)
			require.NoError(t, err)
			for _, format := range []string{"text", "json"} {
				got := starter(t, bareEnvironment(t, "CLAUDEOPS_CLAUDE="+path), "doctor", "-o", format)
				require.Contains(t, got.stdout, "version "+claimed+" at ")
				printed := got.stdout + got.stderr
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

// TestDoctorTriesTheSandbox checks what `doctor` reports about the sandbox of each tier, for each value of
// CLAUDEOPS_SANDBOX.
func TestDoctorTriesTheSandbox(t *testing.T) {
	t.Parallel()
	got := starter(t, bareEnvironment(t, "CLAUDEOPS_SANDBOX=auto"), "doctor")
	require.Regexp(t, `[✓!] sandbox +(full|user only|kernel only|guard only) \(tier 1: (landlock \(ABI \d+|none: ).*; tier 2: (landlock \(ABI \d+|none: )`, got.stdout)
	got = starter(t, bareEnvironment(t, "CLAUDEOPS_SANDBOX=off"), "doctor")
	require.Regexp(t, `[✓!] sandbox +(full|user only|kernel only|guard only) \(tier 1: off; tier 2: off`, got.stdout)
	got = starter(t, bareEnvironment(t, "CLAUDEOPS_SANDBOX=require-kernel", "CLAUDEOPS_CONTAINMENT=group"), "doctor")
	require.Regexp(t, `✗ sandbox +the agent's sandbox is required, and not to be had here: .*; set CLAUDEOPS_SANDBOX=auto`, got.stdout)
	got = starter(t, bareEnvironment(t, "CLAUDEOPS_SANDBOX=require-full"), "doctor")
	require.Regexp(t, `✗ sandbox +CLAUDEOPS_SANDBOX=require-full: agents would run as the worker's user`, got.stdout)
}

// TestDoctorChecksTheServicesFile checks what `doctor` reports without a services file, with one, and with a mistake in it.
func TestDoctorChecksTheServicesFile(t *testing.T) {
	t.Parallel()
	got := starter(t, bareEnvironment(t), "doctor")
	require.Regexp(t, `✓ services +none are described: CLAUDEOPS_SERVICES_FILE is not set\n`, got.stdout)

	file := filepath.Join(t.TempDir(), "services.yaml")
	environ := bareEnvironment(t, "CLAUDEOPS_SERVICES_FILE="+file)
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nservices: [{name: web}, {name: db}]\n"), 0o600))
	require.Regexp(t, `✓ services +2 described in `+file+`\n`, starter(t, environ, "doctor").stdout)
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nservices: [{name: web}, {name: Web}]\n"), 0o600))
	got = starter(t, environ, "doctor")
	require.Regexp(t, `✗ configuration .*`+file+`"; it must name a list of services that can be used: service "Web": "Web" is already a name`, got.stdout)
}
