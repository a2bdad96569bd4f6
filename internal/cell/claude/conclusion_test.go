package claude

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadConclusion reads transcripts of sessions that have forked a session with an output of its own.
func TestReadConclusion(t *testing.T) {
	t.Parallel()
	line := func(uuid, role, content string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"message":{"role":%q,"id":"msg-%s","model":"claude-haiku-4","content":[%s],`+
			`"usage":{"input_tokens":1000,"output_tokens":100}}}`, role, uuid, role, uuid, content)
	}
	prompt := func(uuid string) string { return line(uuid, "user", `{"type":"text","text":"how is nas?"}`) }
	output := func(uuid, reply string) string {
		return line(uuid, "assistant", fmt.Sprintf(`{"type":"tool_use","id":"call-%s","name":"StructuredOutput","input":{"reply":%q}}`, uuid, reply))
	}
	result := func(uuid, call string, refused bool) string {
		return line(uuid, "user", fmt.Sprintf(`{"type":"tool_result","tool_use_id":"call-%s","content":"x","is_error":%t}`, call, refused))
	}
	thought := line("s1", "assistant", `{"type":"text","text":"I look."},{"type":"tool_use","id":"call-s1","name":"Bash","input":{"command":"ls"}}`)
	inherited := []string{prompt("p1"), output("p2", "the answer before"), result("p3", "p2", false)}
	for name, tt := range map[string]struct {
		own  []string
		want string
	}{
		"the parent's alone":         {nil, ""},
		"a prompt without an answer": {[]string{prompt("s0")}, ""},
		"an answer":                  {[]string{prompt("s0"), thought, output("s2", "it sleeps"), result("s3", "s2", false)}, `{"reply":"it sleeps"}`},
		"an answer without a result": {[]string{prompt("s0"), thought, output("s2", "it sleeps")}, `{"reply":"it sleeps"}`},
		"a refused answer":           {[]string{prompt("s0"), output("s2", "it sleeps"), result("s3", "s2", true)}, ""},
		"a prompt after the answer":  {[]string{prompt("s0"), output("s2", "it sleeps"), result("s3", "s2", false), prompt("s4")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent, path := filepath.Join(t.TempDir(), "parent.jsonl"), filepath.Join(t.TempDir(), "own.jsonl")
			require.NoError(t, os.WriteFile(parent, []byte(strings.Join(inherited, "\n")), 0o600))
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(append(inherited[:3:3], tt.own...), "\n")), 0o600))
			found, err := ReadConclusion(path, parent)
			require.NoError(t, err)
			if tt.want == "" {
				require.Nil(t, found)
				return
			}
			require.JSONEq(t, tt.want, string(found.Output))
			require.Equal(t, Tokens{Input: 2_000, Output: 200}, found.Tokens, "without what the parent has used")
			require.Equal(t, []string{"call-s1"}, found.Calls)
			require.Equal(t, []int{2, 1_100}, []int{found.Turns, found.ContextTokens})
			require.InDelta(t, 0.003, found.CostUSD, 1e-9)
			_, err = ReadConclusion(path, parent+"-of-elsewhere")
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
}
