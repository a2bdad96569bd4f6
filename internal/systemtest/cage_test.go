//go:build linux

package systemtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestATierCannotChangeWhatItInherited lets Tier 2 of the real CLI rewrite what Tier 1 saw, in its own transcript. Tier
// 3 must not resume that conversation: it starts from a handoff, and an event says why.
func TestATierCannotChangeWhatItInherited(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		work := t.TempDir()
		forge := unseen(t, work, `sed -i 's/seen by tier 1/forged by tier 2/' "$CLAUDE_CONFIG_DIR"/projects/*/*.jsonl && echo rewritten`)
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Model: "haiku"}, claudesim.Bash("echo seen by tier 1"), claudesim.Conclude(asksFor(2))),
			claudesim.On(claudesim.Match{Model: "sonnet"}, forge, claudesim.Conclude(asksFor(3))),
			concluding("opus", resolved())))
		environ := environment(t, cli, "CLAUDEOPS_SANDBOX=auto", "CLAUDEOPS_WORK_DIR="+work, "ANTHROPIC_API_KEY=not-a-key", "ANTHROPIC_BASE_URL="+api.URL())
		s := startSite(t, startTemporal(t), environ)
		chain, err := s.finish(s.start(nil))
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		require.Len(t, chain.Sessions, 4)
		refused, again := chain.Sessions[2], chain.Sessions[3]
		require.Equal(t, escalation.SessionResumeFailed, refused.Status)
		require.Contains(t, refused.Error, "its agent changed what it had inherited")
		require.Zero(t, refused.Turns)
		require.Equal(t, escalation.ContinuityHandoff, again.Continuity)
		var told []string
		for _, event := range chain.Events {
			if event.Kind == escalation.EventDecision && event.Severity == escalation.SeverityWarning {
				told = append(told, event.Message)
			}
		}
		require.Contains(t, strings.Join(told, "\n"), "handoff (could not be continued)")
		requests := api.Requests()
		require.Contains(t, strings.Join(requests[len(requests)-1].Prompts(), "\n"), asksFor(3).Summary)
		for _, request := range requests {
			if modelOf(request.Model) == "opus" {
				require.NotContains(t, strings.Join(request.ToolResults(), "\n"), "forged by tier 2")
			}
		}
		requireRecorded(t, s, chain)
	})
}

// TestTheArchiveHandsOutNothing lets Tier 1 of the real CLI put a link to the worker's token in the place of its
// transcript, and look for it in what Tier 2 gets. It also leaves files behind that Tier 2's shell and git would run
// and read.
func TestTheArchiveHandsOutNothing(t *testing.T) {
	forRealCLIs(t, func(t *testing.T, _ claudesim.Version, cli string) {
		work := t.TempDir()
		environ := environment(t, cli, "CLAUDEOPS_SANDBOX=auto", "CLAUDEOPS_WORK_DIR="+work, "ANTHROPIC_API_KEY=not-a-key")
		cfg, err := config.Load(environ)
		require.NoError(t, err)
		require.NoError(t, cfg.MakeDirs())
		token := secretFiles(t, cfg, homeIn(environ))["token"]
		ran := filepath.Join(t.TempDir(), "ran")
		attack := unseen(t, work, `cd "$CLAUDE_CONFIG_DIR"/projects/* && for f in *.jsonl; do ln -sf `+token+` $f; done; ls -l; `+
			`mkdir -p ../../shell-snapshots; echo touch `+ran+` | tee -a ../../shell-snapshots/*.sh "$HOME/.bashrc" "$HOME/.profile"; `+
			`printf '[alias]\n\tst = !touch `+ran+`\n' > "$HOME/.gitconfig"; echo planted`)
		look := claudesim.Bash(`cat "$HOME/.gitconfig"; ls -a "$HOME" "$CLAUDE_CONFIG_DIR"/../; echo looked`)
		api := simtest.StartAPI(t, claudesim.Play(
			claudesim.On(claudesim.Match{Model: "haiku"}, attack, claudesim.Conclude(asksFor(2))),
			claudesim.On(claudesim.Match{Model: "sonnet"}, look, claudesim.Conclude(resolved()))))
		s := startSite(t, startTemporal(t), append(environ, "ANTHROPIC_BASE_URL="+api.URL()))
		chain, err := s.finish(s.start(nil))
		require.NoError(t, err)
		require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
		said := ""
		for _, request := range api.Requests() {
			said += strings.Join(request.ToolResults(), "\n")
		}
		require.Contains(t, said, "planted")
		require.Contains(t, said, "looked")
		require.NotContains(t, said, "[alias]", "Tier 2 has a home of its own")
		require.NoFileExists(t, ran)
		require.NotContains(t, said, "PRIVATE KEY")
		for _, session := range chain.Sessions {
			text, err := os.ReadFile(conversationOf(s.cfg, session.SessionID))
			require.True(t, err == nil || os.IsNotExist(err))
			require.NotContains(t, string(text), "PRIVATE KEY")
		}
		content, err := os.ReadFile(token)
		require.NoError(t, err)
		require.Equal(t, "PRIVATE KEY", string(content))
		left, err := os.ReadDir(filepath.Join(s.cfg.AgentsDir(), "sessions"))
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

// TestAnAgentCannotFillTheDisk lets an agent write more than its session may: into its home, into a file without a
// name, and as directories without end. The session must be ended, and nothing of it may stay.
func TestAnAgentCannotFillTheDisk(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for name, fill := range map[string]string{
		"home":       `head -c 40M /dev/zero > "$HOME/big"; sleep 300`,
		"temporary":  `head -c 40M /dev/zero > "$TMPDIR/big"; sleep 300`,
		"chains_dir": `head -c 40M /dev/zero > "$CLAUDEOPS_CHAIN_DIR/big"; sleep 300`,
		"no_name":    `exec 9> "$TMPDIR/big"; rm "$TMPDIR/big"; head -c 40M /dev/zero >&9; sleep 300`,
		"hidden":     `mkdir "$HOME/a"; head -c 40M /dev/zero > "$HOME/a/big"; chmod 0 "$HOME/a"; sleep 300`,
		"deep":       `cd "$HOME"; for i in $(seq 300); do mkdir d && cd d || exit; done; sleep 300`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claude := simtest.Install(t, claudesim.Play(claudesim.Always(unseen(t, t.TempDir(), fill), claudesim.Conclude(resolved()))))
			s := startSite(t, temporalServer, environment(t, claude, append(toolsAllowed(),
				"CLAUDEOPS_SESSION_DISK=16", "CLAUDEOPS_SANDBOX=auto", "CLAUDEOPS_TASK_QUEUE=fill_"+name)...))
			chain, err := s.finish(s.start(nil))
			require.NoError(t, err)
			require.Equal(t, escalation.SessionFailed, chain.Sessions[0].Status)
			require.Regexp(t, "the agent was ended because its session stored (more than 16 MiB|directories more than 200 levels deep)", chain.Sessions[0].Error)
			require.Equal(t, 1, chain.Sessions[0].Attempts)
			require.Empty(t, processesOf(t, chain.Sessions[0].SessionID))
			left, err := os.ReadDir(filepath.Join(s.cfg.AgentsDir(), "sessions"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
