package cell

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// shelf is a Supervisor that keeps decisions in memory. While away is true, it fails.
type shelf struct {
	nobody

	away bool
	kept []Entry
}

func (s *shelf) Decided(_ context.Context, decisions []Entry) error {
	if s.away {
		return errors.New("away")
	}
	s.kept = append(s.kept, decisions...)
	return nil
}

func newAuditOf(supervisor Supervisor) *callAudit {
	return &callAudit{
		supervisor: supervisor, logger: slog.New(slog.DiscardHandler), executable: "/usr/bin/worker", known: map[string]bool{},
		session: context.Background(),
	}
}

func TestCallAuditKeepsWhatTheRecordsMissed(t *testing.T) {
	t.Parallel()
	records := &shelf{away: true}
	audit := newAuditOf(records)
	first := Entry{Session: "s", Tier: 2, Call: "a", Tool: "Bash", Input: []byte(`{"command":"docker restart web"}`), Decision: guard.Decision{
		Allowed: true, Rule: "docker restart", Actions: []guard.Action{{Kind: "restart", Service: "web"}},
	}}
	audit.record(first)
	require.Empty(t, records.kept)
	records.away = false
	second := first
	second.Call, second.Decision = "b", guard.Decision{Rule: "default", Reason: "no"}
	audit.record(second)
	require.Equal(t, []Entry{first, second}, records.kept)
	require.Equal(t, []Entry{second}, audit.refused)
	audit.flush(t.Context())
	require.Len(t, records.kept, 2)
}

// TestCallAuditNamesManagedSettings checks that managed settings without hooks are named, whether the CLI then refuses
// a call or makes it.
func TestCallAuditNamesManagedSettings(t *testing.T) { //nolint:paralleltest // it changes where managed settings are
	before := claude.ManagedSettings
	t.Cleanup(func() { claude.ManagedSettings = before })
	claude.ManagedSettings = t.TempDir()
	file := filepath.Join(claude.ManagedSettings, "managed-settings.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"disableAllHooks":true}`), 0o600))
	for _, refused := range []bool{true, false} {
		err := newAuditOf(&shelf{}).check([]claude.MadeCall{{ID: "a", Tool: "Bash", Failed: refused}}, true)
		require.ErrorIs(t, err, ErrUnguarded)
		require.ErrorContains(t, err, "because the managed settings "+file+" switch off its hooks (disableAllHooks): remove that there")
	}
}

func TestCallAuditHoldsCallsAgainstDecisions(t *testing.T) {
	t.Parallel()
	call := func(id, tool string, failed bool) claude.MadeCall {
		return claude.MadeCall{ID: id, Tool: tool, Failed: failed}
	}
	for name, tc := range map[string]struct {
		decided  []Entry
		made     []claude.MadeCall
		byItself bool
		want     string
	}{
		"all were decided on":               {[]Entry{{Call: "a"}, {Call: "b"}}, []claude.MadeCall{call("a", "Bash", false), call("b", "Read", true)}, true, ""},
		"no calls":                          {nil, nil, true, ""},
		"the verdict has no effect":         {nil, []claude.MadeCall{call("a", "StructuredOutput", false)}, true, ""},
		"one was refused by the CLI itself": {[]Entry{{Call: "a"}}, []claude.MadeCall{call("a", "Bash", false), call("b", "Edit", true)}, true, ""},
		"one was made on its own":           {[]Entry{{Call: "a"}}, []claude.MadeCall{call("b", "Read", false)}, false, "the CLI made its call b of Read on its own"},
		"none got here":                     {nil, []claude.MadeCall{call("a", "Bash", true)}, true, "it got none of them, and they were refused (1); see that agents can run /usr/bin/worker"},
		"none got here before the end":      {nil, []claude.MadeCall{call("a", "Bash", true)}, false, ""},
		"only the shell asked": {
			[]Entry{{Call: "unasked-1", Decision: guard.Decision{Rule: RuleUnasked}}}, []claude.MadeCall{call("a", "Bash", true)}, true, "it got none of them",
		},
	} {
		audit := newAuditOf(&shelf{})
		for _, entry := range tc.decided {
			audit.record(entry)
		}
		err := audit.check(tc.made, tc.byItself)
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, ErrUnguarded, name)
		require.ErrorContains(t, err, tc.want, name)
	}
}
