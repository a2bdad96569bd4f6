package daily

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// calling returns a chain with the calls of its sessions. One session has made no calls.
func calling() operations.Snapshot {
	chain := chaintest.Climbed()
	for i := range chain.Sessions {
		chain.Sessions[i].SessionID = fmt.Sprint("conversation ", i)
	}
	read := chaintest.Bash("conversation 0", 3, "", "")
	read.Tool, read.Input = "Read", `{"limit":10,"file_path":"/etc/caddy/Caddyfile"}`
	long := chaintest.Bash("conversation 3", 6, "", "")
	long.Tool, long.Input = "Write", `{"content":"`+strings.Repeat("x", 200)+"… [cut: 70000 bytes]"
	return operations.Snapshot{Chain: chain, Calls: []escalation.CallDecision{
		chaintest.Bash("conversation 0", 1, "docker ps", ""),
		chaintest.Bash("conversation 0", 2, "docker restart web", "tier 1 may not use docker restart"),
		read,
		chaintest.Bash("conversation 2", 4, "docker restart \x1b[2Jweb\nallowed  2026-03-01 12:00:00  Bash\u202e"+strings.Repeat(" ;:", 100), "hostile\r\x1b]0;owned\a reason"),
		chaintest.Bash("conversation 3", 5, "docker compose up -d web", ""),
		long,
		chaintest.Bash("of no session here", 7, "ls", ""),
	}}
}

func TestTreeShowsCalls(t *testing.T) {
	t.Parallel()
	for golden, list := range map[string]listedCalls{"tree-calls.txt": deniedCalls, "tree-every-call.txt": allCalls} {
		var b bytes.Buffer
		writeSnapshot(&b, chaintest.Clock, calling(), list)
		chaintest.RequireGolden(t, golden, b.Bytes())
	}
}

func TestTreeBoundsDeniedCalls(t *testing.T) {
	t.Parallel()
	var calls []escalation.CallDecision
	for i := range maxDenied + 2 {
		calls = append(calls, chaintest.Bash("", i, fmt.Sprint("try ", i), "no"))
	}
	shown := func(count int, list listedCalls) []string {
		var b bytes.Buffer
		writeCalls(&b, chaintest.Clock, "  ", calls[:count], list)
		return strings.Split(strings.TrimSpace(b.String()), "\n")
	}
	require.Len(t, shown(maxDenied, deniedCalls), maxDenied+1)
	bounded := shown(maxDenied+2, deniedCalls)
	require.Len(t, bounded, maxDenied+2)
	require.Equal(t, "  … 2 more denied: --calls lists every call", bounded[maxDenied+1])
	require.Len(t, shown(maxDenied+2, allCalls), maxDenied+3)
}
