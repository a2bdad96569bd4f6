package envfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/config/envfile"
)

func isSecret(name string) bool { return strings.HasSuffix(name, "_KEY") }

// write writes a file of settings and returns its path.
func write(t *testing.T, mode os.FileMode, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claudeops.env")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func TestRead(t *testing.T) {
	t.Parallel()
	path := write(t, 0o600, `# what this host is
CLAUDEOPS_MAX_TIER=2
; a comment of systemd
export A_KEY = 'sk $HOME # no comment'

EMPTY=
TEXT="two\nlines"   # a comment
`)
	file, err := envfile.Read([]string{envfile.Variable + "=" + path}, isSecret)
	require.NoError(t, err)
	require.Equal(t, envfile.File{Path: path, Variables: []envfile.Entry{
		{"CLAUDEOPS_MAX_TIER", "2", 2}, {"A_KEY", "sk $HOME # no comment", 4}, {"EMPTY", "", 6}, {"TEXT", "two\nlines", 7},
	}}, file)

	// The environment wins. An empty variable is none.
	environ := []string{"CLAUDEOPS_MAX_TIER=3", "TEXT=", "HOME=/h"}
	require.Equal(t, []string{
		"CLAUDEOPS_MAX_TIER=3", "HOME=/h", "A_KEY=sk $HOME # no comment", "EMPTY=", "TEXT=two\nlines",
	}, file.Merge(environ))
	require.Equal(t, 2, file.Line("CLAUDEOPS_MAX_TIER", "2"))
	require.Zero(t, file.Line("CLAUDEOPS_MAX_TIER", "3"))
}

func TestReadRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode          os.FileMode
		content, want string
	}{
		"no variable":        {0o600, "A=1\nnonsense\n", `PATH:2: not a line such as NAME=value: missing =`},
		"an open quote":      {0o600, "A='1\n", `PATH:1: not a line such as NAME=value: unmatched '`},
		"set twice":          {0o600, "A=1\n\nA=2\n", "PATH:3: A is already set on line 1"},
		"names itself":       {0o600, "CLAUDEOPS_ENV_FILE=/x\n", "PATH:1: CLAUDEOPS_ENV_FILE names this file, and belongs in the environment"},
		"a secret for all":   {0o644, "A=1\nA_KEY=x\n", "PATH:2: A_KEY is a secret, and with the mode 0644 others can read the file; do: chmod 0600 PATH"},
		"others can write":   {0o620, "A=1\n", "PATH: with the mode 0620 others can change the file; do: chmod go-w"},
		"more than is read":  {0o600, strings.Repeat("#", 1<<20+1), "PATH: the file has more than 1048576 bytes"},
		"no name of a value": {0o600, "=x\n", "PATH:1: not a line such as NAME=value: empty key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, tt.mode, tt.content)
			_, err := envfile.Read([]string{envfile.Variable + "=" + path}, isSecret)
			require.EqualError(t, err, strings.ReplaceAll(tt.want, "PATH", path))
		})
	}
	_, err := envfile.Read([]string{envfile.Variable + "=claudeops.env"}, isSecret)
	require.EqualError(t, err, `CLAUDEOPS_ENV_FILE is "claudeops.env"; it must be an absolute path`)
	_, err = envfile.Read([]string{envfile.Variable + "=/nowhere/claudeops.env"}, isSecret)
	require.EqualError(t, err, "read the settings: open /nowhere/claudeops.env: no such file or directory")
	_, err = envfile.Read([]string{envfile.Variable + "=" + t.TempDir()}, isSecret)
	require.ErrorContains(t, err, "this is no file")
}

func TestFileOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := write(t, 0o600, "A=1\n")
	require.NoError(t, os.Chown(path, 65534, 65534))
	_, err := envfile.Read([]string{envfile.Variable + "=" + path}, isSecret)
	require.EqualError(t, err, path+": the file belongs to the user 65534, who could change what runs here; do: chown")
}

func TestPlaceOfTheFile(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	none, err := envfile.Read([]string{"HOME=" + home}, isSecret)
	require.NoError(t, err)
	require.Zero(t, none)

	path := filepath.Join(home, ".config", envfile.Name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("A=1\n"), 0o600))
	found, err := envfile.Read([]string{"HOME=" + home}, isSecret)
	require.NoError(t, err)
	require.Equal(t, path, found.Path)

	elsewhere, err := envfile.Read([]string{"HOME=" + home, "XDG_CONFIG_HOME=" + t.TempDir()}, isSecret)
	require.NoError(t, err)
	require.Zero(t, elsewhere)
}

func TestAppend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "claudeops.env")
	require.NoError(t, envfile.Append(path, []string{"# first", "A=1"}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.NoError(t, os.WriteFile(path, []byte("A=1"), 0o600)) // without a line break at its end
	require.NoError(t, envfile.Append(path, []string{"B=2"}))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "A=1\nB=2\n", string(content))
	require.ErrorContains(t, envfile.Append(filepath.Join(path, "below"), nil), "write the settings")
}
