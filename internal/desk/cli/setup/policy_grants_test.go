package setup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	policy, err := guard.ParsePolicyOver(deploy.Policy, []byte("version: 1\nextends: default\n"+
		"without: {tiers: {1: {hosts: ['**']}, 2: {hosts: ['**']}}}\n"))
	require.NoError(t, err)
	media := filepath.Join(t.TempDir(), "media")
	require.NoError(t, os.MkdirAll(media, 0o700))
	place := guard.Place{Work: []string{t.TempDir()}, Home: "/nowhere", Temp: "/nowhere/tmp", Path: []string{"/usr/bin", "/bin"}}
	g := suggester{guard.New(policy, guard.Host{}), policy}
	call := func(tier int, tool string, input map[string]string) guard.Call {
		text, err := json.Marshal(input)
		require.NoError(t, err)
		return guard.Call{Tier: tier, Tool: tool, Input: text, Place: place}
	}
	bash := func(tier int, script string) guard.Call {
		return call(tier, "Bash", map[string]string{"command": script})
	}
	suggested := func(calls ...guard.Call) (grants [][3]string) {
		for _, s := range g.suggestions(calls) {
			require.NotEmpty(t, s.Risk)
			require.NotEmpty(t, s.Example)
			grants = append(grants, [3]string{s.What, strings.Join(s.Section, " ") + " " + s.Grant, s.Wider})
		}
		return grants
	}

	require.Equal(t, [][3]string{{
		"docker stop", `programs docker {commands: {stop: {tier: 2, flags: "-INT -t", args: "SERVICE+", action: restart}}}`, "",
	}}, suggested(bash(2, "docker stop -t -5 jellyfin")))
	require.Equal(t, [][3]string{{
		"poolctl status", `programs poolctl {commands: {status: {tier: 1, flags: "-v", args: "/backup|tank/"}}}`,
		`{commands: {status: {tier: 1, flags: "-v", args: "NAME"}}}`,
	}}, suggested(bash(1, "hostname; poolctl status -v tank | head -5"), bash(1, "poolctl status -v backup")))
	require.Equal(t, [][3]string{{
		"reads " + media + "/log", `tiers 1 read "` + media + `/log"`, `"` + media + `"`,
	}}, suggested(bash(1, "cat "+media+"/log"), call(1, "Read", map[string]string{"file_path": media + "/log"})))
	require.Equal(t, [][3]string{{"asks nas.lan", `tiers 1 hosts "nas.lan"`, ""}}, suggested(bash(1, "curl -fsS http://nas.lan:81/health")))

	for _, nothing := range []guard.Call{
		bash(1, "docker ps"),                                                                                            // allowed
		bash(2, "rm -rf /"), bash(1, "docker volume rm db"), bash(1, "cat /etc/shadow"), bash(1, "kubectl get secrets"), // never, secrets
		bash(2, "temporal workflow list"), bash(1, "cat /proc/1/environ"),
		bash(1, "docker restart jellyfin"),                   // Tier 1 changes nothing
		bash(1, `poolctl status "$POOL"`), bash(1, "/tmp/x"), // unknown words, and a program of nobody's
		bash(3, "rm -rf /"), call(1, "Write", map[string]string{"file_path": "/etc/x"}), bash(1, "if"),
	} {
		require.Empty(t, suggested(nothing), string(nothing.Input))
	}
}

// TestSuggestionsForAttacks suggests grants for attacks that are not denied for good. A person reads these with their
// risks.
func TestSuggestionsForAttacks(t *testing.T) {
	t.Parallel()
	policy, err := guard.ParsePolicy(deploy.Policy)
	require.NoError(t, err)
	place := guard.Place{Work: []string{t.TempDir()}, Home: "/nowhere", Temp: "/nowhere/tmp", Path: []string{"/usr/bin", "/bin"}}
	for script, want := range map[string]string{
		"systemctl stop temporal": `{commands: {stop: {tier: 2, args: "UNIT+", action: restart}}}`,
		"docker rm -v db":         "", "docker run -v /:/host alpine": "", "git push --force origin main": "", "systemctl poweroff": "",
		"claudeops gate x --action f": "", "docker exec web cat /run/secrets/db": "", "ssh nas cat /etc/shadow": "", "cat ~/.ssh/id_rsa": "",
		"dd if=/dev/zero of=/dev/sda": "", "env": "", "printenv TOKEN": "", "python3 -c 1": "", "sudo id": "", "busybox sh": "",
	} {
		input, err := json.Marshal(map[string]string{"command": script})
		require.NoError(t, err)
		var grants string
		for _, s := range (suggester{guard.New(policy, guard.Host{}), policy}).suggestions([]guard.Call{{Tier: 2, Tool: "Bash", Input: input, Place: place}}) {
			grants += s.Grant
		}
		require.Equal(t, want, grants, script)
	}
}
