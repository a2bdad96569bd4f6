package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// configures returns a function that makes settings of a repository name a program, and has its attributes use it.
func configures(keys ...string) func(t *testing.T, live, program string) {
	return func(t *testing.T, live, program string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(live, ".git/info/attributes"), []byte("* filter=evil diff=evil\n"), 0o600))
		for _, key := range keys {
			gitIn(t, live, "config", key, program)
		}
	}
}

// TestHostileRepository takes a change through the whole path of a required review, from the worktree to the push, in
// repositories that name programs in every way that git knows. The supervisor runs none of them. Either the reviewed
// change is pushed, or nothing is committed and people are told why.
func TestHostileRepository(t *testing.T) {
	t.Parallel()
	temporalServer := startTemporal(t)
	for name, c := range map[string]struct {
		prepare func(t *testing.T, live, program string)
		// refused is what people are told if there can be no worktree.
		refused string
	}{
		"hooks": {prepare: func(t *testing.T, live, program string) {
			for _, hook := range []string{
				"post-checkout", "reference-transaction", "post-index-change", "pre-push", "post-rewrite", "pre-auto-gc", "update", "post-update",
			} {
				require.NoError(t, process.WriteProgram(filepath.Join(live, ".git/hooks", hook), []byte("#!/bin/sh\n"+program+"\n")))
			}
		}},
		"attributes, links and names": {prepare: func(t *testing.T, live, _ string) {
			attributes := "* filter=evil diff=evil merge=evil text=auto ident export-subst\n"
			require.NoError(t, os.WriteFile(filepath.Join(live, ".gitattributes"), []byte(attributes), 0o600))
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(live, "passwd")))
			for _, odd := range []string{"a\nb", "`x`", "--exec=x", ":(top)x"} {
				require.NoError(t, os.WriteFile(filepath.Join(live, odd), []byte("x"), 0o600))
			}
			gitIn(t, live, "add", "--all")
			gitIn(t, live, "commit", "--quiet", "--amend", "--message", "first")
			gitIn(t, live, "push", "--quiet", "--force", "origin", "main")
		}},
		"programs":   {refused: "which may run a program", prepare: configures("core.sshCommand", "credential.helper", "gpg.program", "alias.push")},
		"filters":    {refused: "which may run a program", prepare: configures("filter.evil.clean", "filter.evil.smudge", "filter.evil.process")},
		"textconv":   {refused: "which may run a program", prepare: configures("diff.evil.textconv", "diff.external")},
		"the remote": {refused: "which may run a program", prepare: configures("remote.origin.uploadpack", "remote.origin.receivepack")},
	} {
		live, remote := newRemoteRepository(t)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mark, program := filepath.Join(dir, "mark"), filepath.Join(dir, "program")
			// The agent's own git may run them, in the agent's own place. Its processes have the CLI's variables.
			require.NoError(t, process.WriteProgram(program, []byte(fmt.Sprintf(
				"#!/bin/sh\n[ -n \"$CLAUDECODE\" ] || { echo \"$0 $*\"; env; } >>%s\ncat\n", mark))))
			c.prepare(t, live, program)
			require.NoError(t, os.RemoveAll(mark), "a person's git has run programs, too")

			s := startSite(t, temporalServer, environment(t, simtest.Install(t, correctedOnce()), "CLAUDEOPS_WORK_DIR="+live,
				"CLAUDEOPS_REVIEW_CHANGES=required"))
			chain, err := s.finish(s.start(nil))
			require.NoError(t, err)
			ran, err := os.ReadFile(mark)
			require.ErrorIs(t, err, os.ErrNotExist, string(ran))
			if c.refused != "" {
				require.Contains(t, fmt.Sprint(keptEvents(chain)), c.refused)
				require.Empty(t, pushedTo(t, remote))
				return
			}
			require.Equal(t, escalation.OutcomeResolved, chain.Outcome, "%s %+v", chain.Reason, chain.Last())
			require.Len(t, chain.Reviews, 2, "%v %+v", keptEvents(chain), chain.Sessions)
			done := chain.Reviews[1]
			require.Equal(t, done.Commit+" refs/heads/"+done.Branch, pushedTo(t, remote))
			require.Equal(t, "compose.yaml", gitIn(t, remote, "diff", "--name-only", "main", done.Commit))
		})
	}
}
