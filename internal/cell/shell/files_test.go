//go:build linux

package shell_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/door"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// TestSearchesShowNoSecrets runs scripts that the guard permits, in the sandbox of their tier. The kernel keeps secret
// files from the programs, whatever their options say, and lets them read the others.
func TestSearchesShowNoSecrets(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	root := s.place.Work[0]
	require.NoError(t, os.WriteFile(root+"/tls.key", []byte("PASSWORD=x\n"), 0o644))
	require.NoError(t, os.WriteFile(root+"/notes", []byte("PASSWORD=of nothing\n"), 0o644))
	for _, tier := range []int{1, 2} {
		for _, script := range []string{
			`grep -r PASSWORD .`,
			`grep -r PASSWORD`,
			`grep -r '' . --exclude='*' --include=.env --include=notes`,
			`grep -r '' --include='[!x]env' --include=notes .`,
			`grep -r PASSWORD lnk/ lnk/sub/../`,
			`grep -rn PASSWORD --exclude=notes . ; cat notes`,
			`find . -type f -exec grep PASSWORD {} \; ; find . -name notes | xargs grep -r PASSWORD .`,
			`for f in * .*; do [ -f "$f" ] && grep PASSWORD "$f"; done; true`,
		} {
			printed, entries, started := s.confined(t, tier, script)
			require.True(t, started, entries)
			require.NotContains(t, printed, "PASSWORD=x", script)
			require.Contains(t, printed, "of nothing", script)
			require.True(t, slices.ContainsFunc(entries, func(e cell.Entry) bool {
				return !e.Decision.Allowed && strings.Contains(e.Decision.Reason, root)
			}), "%s: nothing is recorded: %v", script, entries)
		}
	}
}

// confined runs a script in the shell in the sandbox of its tier, with the programs of this host. It returns the output
// and what was recorded, and false if the guard does not let the script start.
func (s *stage) confined(t *testing.T, tier int, script string) (printed string, entries []cell.Entry, started bool) {
	t.Helper()
	s.reset(t)
	s.entries = nil
	dirs := append(slices.Clone(s.programs), "/usr/bin", "/bin") // with the host's own programs
	policy, err := guard.ParsePolicy(withDirectories(s.programs...))
	require.NoError(t, err)
	session := cell.PostSession{ID: "session", Tier: tier, Place: s.place, Executables: policy.Executables(tier)}
	session.Place.Path = dirs
	post, err := cell.OpenPost(s.sockets, guard.New(policy, guard.Host{}), session, unlimited{}, s.record)
	require.NoError(t, err)
	if denied := post.Try(script); denied != "" {
		require.NoError(t, post.Close())
		return "", []cell.Entry{{Decision: guard.Decision{Reason: denied}}}, false
	}
	rules := policy.FileRules(tier)
	opens := &process.Opens{
		Secret: rules.Secret, Kept: rules.Kept, Clear: append(rules.Clear, s.place.Temp), Addresses: s.addresses,
		Held:    session.Executables.Held(),
		Refused: func(refused process.Refused) { post.Refused(cell.RefusedFile(refused)) },
	}
	opens.HeldRead, opens.HeldWrite = policy.Reached(tier, s.place)
	writable := []string{s.place.Temp, s.place.Home}
	if tier == 2 {
		writable = append(writable, s.place.Work...)
	}
	var output bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), scriptLimit) // some scripts read what does not end
	defer cancel()
	exit, err := process.Run(ctx, process.Spec{
		Path: s.self, Args: []string{"eval " + quote(script)}, Dir: s.place.Work[0], Stdout: &output, Stderr: &output,
		Env: []string{
			"PATH=" + strings.Join(dirs, ":"), "HOME=" + s.place.Home, "TMPDIR=" + s.place.Temp, "TERM=dumb", "ANTHROPIC_API_KEY=" + key,
			door.SocketVariable + "=" + post.Environment("", "")[door.SocketVariable],
		},
		User: &process.User{UID: nobody, GID: nobody}, Containment: process.ModeSubreaper,
		Sandbox: &process.Sandbox{
			Writable: writable, Hidden: s.place.Own, Opens: opens, Executable: append(session.Executables.All(), s.self),
		},
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		require.NoError(t, err)
	}
	require.NoError(t, post.Close())
	if !exit.Sandbox.Opens {
		require.Empty(t, os.Getenv("CI"), exit.Sandbox)
		t.Skip(exit.Sandbox)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return output.String(), s.entries, true
}
