package claude

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheHomeIsTheAgentsOwnAndHasNoStartupFiles(t *testing.T) {
	t.Parallel()
	cli := &CLI{options: Options{ConfigDir: filepath.Join(t.TempDir(), "claude")}}
	require.NoError(t, cli.makeDirs(Invocation{}))
	info, err := os.Stat(cli.ownHome())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	kept := filepath.Join(cli.ownHome(), ".kubeconfig")
	for _, path := range []string{kept, filepath.Join(cli.ownHome(), ".bashrc"), filepath.Join(cli.ownHome(), ".profile")} {
		require.NoError(t, os.WriteFile(path, []byte("touch somewhere"), 0o600))
	}
	require.NoError(t, cli.makeDirs(Invocation{}))
	require.FileExists(t, kept)
	require.NoFileExists(t, filepath.Join(cli.ownHome(), ".bashrc"))
	require.NoFileExists(t, filepath.Join(cli.ownHome(), ".profile"))
}

func TestNothingIsRemovedThroughALinkOutOfTheDirectory(t *testing.T) {
	t.Parallel()
	operators := t.TempDir()
	profile := filepath.Join(operators, ".profile")
	require.NoError(t, os.WriteFile(profile, nil, 0o600))
	cli := &CLI{options: Options{ConfigDir: t.TempDir()}}
	require.NoError(t, os.Symlink(operators, cli.ownHome()))
	require.Equal(t, KindNotStarted, KindOf(cli.makeDirs(Invocation{})))
	require.FileExists(t, profile)
}
