package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/store"
	"github.com/claudeops/claudeops/internal/supervisor"
)

// bash is what was decided on a command; reason is why it was denied, if it was.
func bash(sessionID string, minute int, command, reason string) escalation.CallDecision {
	input, err := json.Marshal(map[string]string{"description": "Do it", "command": command})
	if err != nil {
		panic(err)
	}
	return escalation.CallDecision{
		ChainID: "chain-42", SessionID: sessionID, Call: fmt.Sprint("call ", minute), Tier: escalation.TierObserve, Tool: "Bash",
		At: noon.Add(time.Duration(minute) * time.Minute), Input: string(input), Allowed: reason == "", Reason: reason,
	}
}

// calling is a chain whose sessions have made calls, and one has made none.
func calling() sight {
	chain := climbed()
	for i := range chain.Sessions {
		chain.Sessions[i].SessionID = fmt.Sprint("conversation ", i)
	}
	read := bash("conversation 0", 3, "", "")
	read.Tool, read.Input = "Read", `{"limit":10,"file_path":"/etc/caddy/Caddyfile"}`
	long := bash("conversation 3", 6, "", "")
	long.Tool, long.Input = "Write", `{"content":"`+strings.Repeat("x", 200)+"… [cut: 70000 bytes]"
	return sight{chain: chain, calls: []escalation.CallDecision{
		bash("conversation 0", 1, "docker ps", ""),
		bash("conversation 0", 2, "docker restart web", "tier 1 may not use docker restart"),
		read,
		bash("conversation 2", 4, "docker restart \x1b[2Jweb\nallowed  2026-03-01 12:00:00  Bash\u202e"+strings.Repeat(" ;:", 100), "hostile\r\x1b]0;owned\a reason"),
		bash("conversation 3", 5, "docker compose up -d web", ""),
		long,
		bash("of no session here", 7, "ls", ""),
	}}
}

func TestTreeShowsCalls(t *testing.T) {
	t.Parallel()
	for golden, every := range map[string]bool{"tree-calls.txt": false, "tree-every-call.txt": true} {
		now := calling()
		now.everyCall = every
		var b bytes.Buffer
		fixedApp().writeSight(&b, now)
		requireGolden(t, golden, b.Bytes())
	}
}

func TestTreeBoundsDeniedCalls(t *testing.T) {
	t.Parallel()
	var calls []escalation.CallDecision
	for i := range maxDenied + 2 {
		calls = append(calls, bash("", i, fmt.Sprint("try ", i), "no"))
	}
	shown := func(count int, every bool) []string {
		var b bytes.Buffer
		fixedApp().writeCalls(&b, "  ", calls[:count], every)
		return strings.Split(strings.TrimSpace(b.String()), "\n")
	}
	require.Len(t, shown(maxDenied, false), maxDenied+1)
	bounded := shown(maxDenied+2, false)
	require.Len(t, bounded, maxDenied+2)
	require.Equal(t, "  … 2 more denied: --calls lists every call", bounded[maxDenied+1])
	require.Len(t, shown(maxDenied+2, true), maxDenied+3)
}

// openRecords opens the records of environ for a test.
func openRecords(t *testing.T, environ []string) *store.Store {
	t.Helper()
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	records, err := supervisor.OpenStore(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	return records
}

// requireCalls looks at calls of a chain that has ended.
func requireCalls(t *testing.T, environ []string, chain escalation.Chain) {
	t.Helper()
	var before chainView
	require.NoError(t, json.Unmarshal([]byte(starter(t, environ, "chain", chain.ID, "-o", "json").stdout), &before))
	require.Equal(t, chain.Outcome, before.Outcome, "the fields of the chain stay where they were")
	denied := bash(chain.Sessions[0].SessionID, 1, "rm -r /srv", "nothing is to be removed")
	denied.ChainID = chain.ID
	require.NoError(t, openRecords(t, environ).AppendDecisions(t.Context(), []escalation.CallDecision{denied}))

	for _, args := range [][]string{{"chain", chain.ID}, {"chain", fmt.Sprint(chain.Sessions[0].ID)}} {
		require.Regexp(t, `└── Session .*\n        calls: \d+ allowed, 1 denied\n        denied   .*  Bash  rm -r /srv — nothing is to be removed\n`,
			starter(t, environ, args...).stdout)
		var view chainView
		require.NoError(t, json.Unmarshal([]byte(starter(t, environ, append(args, "-o", "json")...).stdout), &view))
		require.Equal(t, denied, view.Calls[len(view.Calls)-1])
	}
}

// TestLineageShowsCalls asks records for a session whose calls are there, and for its parent's.
func TestLineageShowsCalls(t *testing.T) {
	t.Parallel()
	environ := bareEnvironment(t)
	records := openRecords(t, environ)
	var parent int64
	for i, id := range []string{"parent", "child"} {
		opened, err := records.OpenSession(t.Context(), escalation.Session{
			ParentID: parent, ChainID: "chain-42", SessionID: id, Tier: escalation.Tier(i + 1), Model: "haiku", StartedAt: noon,
		}, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
		require.NoError(t, err)
		parent = opened.Session.ID
	}
	require.NoError(t, records.AppendDecisions(t.Context(), []escalation.CallDecision{
		bash("parent", 1, "docker ps", ""), bash("of another line", 2, "ls", ""), bash("child", 3, "docker restart web", "no"),
	}))

	shown := starter(t, environ, "chain", "1")
	require.Equal(t, exitOK, shown.code, shown.stderr)
	require.Contains(t, shown.stdout, "\n│       calls: 1 allowed, 0 denied\n└── Session #2 ")
	require.Regexp(t, `\n        calls: 0 allowed, 1 denied\n        denied   [-0-9]+ [:0-9]+  Bash  docker restart web — no\n`, shown.stdout)
	require.NotContains(t, shown.stdout, "docker ps")
	require.Contains(t, starter(t, environ, "chain", "1", "--calls").stdout, "  Bash  docker ps\n")

	var found lineage
	require.NoError(t, json.Unmarshal([]byte(starter(t, environ, "chain", "2", "-o", "json").stdout), &found))
	require.Len(t, found.Calls, 2)
	require.Equal(t, "child", found.Calls[1].SessionID)
}

// TestCallsElsewhere leaves calls out where the records are not, and makes none.
func TestCallsElsewhere(t *testing.T) {
	t.Parallel()
	environ := bareEnvironment(t)
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	require.Nil(t, recordedCalls(t.Context(), cfg, "chain-42"))
	require.NoFileExists(t, cfg.State.DatabaseFile())
	text, err := json.Marshal(chainView{escalation.Chain{ID: "chain-42"}, nil})
	require.NoError(t, err)
	require.NotContains(t, string(text), `"calls"`)

	openRecords(t, environ)
	require.Empty(t, recordedCalls(t.Context(), cfg, "chain-42"))
	text, err = json.Marshal(chainView{escalation.Chain{ID: "chain-42"}, recordedCalls(t.Context(), cfg, "chain-42")})
	require.NoError(t, err)
	require.Contains(t, string(text), `"calls":[]`, "no calls are not the same as none that are known")

	cfg.State.DatabaseURL = "sqlite://" + filepath.Join(t.TempDir(), "other.db")
	require.NoError(t, os.WriteFile(cfg.State.DatabaseFile(), []byte("no database at all"), 0o600))
	require.Nil(t, recordedCalls(t.Context(), cfg, "chain-42"))
}
