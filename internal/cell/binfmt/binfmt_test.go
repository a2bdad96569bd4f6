package binfmt_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/binfmt"
)

// write creates an executable file.
func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o700))
	return path
}

func TestScripts(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	tool := write(t, dir, "tool", "no format that names another file")
	require.NoError(t, os.Symlink(tool, filepath.Join(dir, "link")))
	env := write(t, dir, "env", "")
	inner := write(t, dir, "inner", "#! "+dir+"/link -x\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), []byte("#!"+tool), 0o600))
	programs := binfmt.Programs{Search: []string{"/nowhere", dir}}
	for path, want := range map[string][]string{
		tool:                                {tool},
		filepath.Join(dir, "link"):          {tool},
		inner:                               {inner, tool},
		write(t, dir, "outer", "#!"+inner):  {filepath.Join(dir, "outer"), inner, tool},
		write(t, dir, "empty", "#!"):        {filepath.Join(dir, "empty")},
		write(t, dir, "lost", "#!/nowhere"): {filepath.Join(dir, "lost")},
		write(t, dir, "by-env", "#!"+env+" tool\nmore"):      {filepath.Join(dir, "by-env"), env, tool},
		write(t, dir, "by-env-s", "#!"+env+" -S A=b link\n"): {filepath.Join(dir, "by-env-s"), env, tool},
		write(t, dir, "itself", "#!"+dir+"/itself\n"):        {filepath.Join(dir, "itself")},
		filepath.Join(dir, "data"):                           nil,
		dir:                                                  nil,
		filepath.Join(dir, "missing"):                        nil,
	} {
		require.Equal(t, want, programs.With(path), path)
	}
}

func TestLoader(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("programs of other systems name no loader")
	}
	var programs binfmt.Programs
	found := programs.With("/bin/ls")
	require.NotEmpty(t, found)
	for _, loader := range found[1:] {
		require.Regexp(t, `/ld[-.]`, loader)
	}
	require.NotEmpty(t, found[1:], "ls is linked dynamically on the systems of CI")
	self, err := os.Executable()
	require.NoError(t, err)
	require.Contains(t, programs.With(self), self)
	dir := t.TempDir()
	whole, err := os.ReadFile("/bin/ls")
	require.NoError(t, err)
	for length := range 1200 { // a damaged file names no loader
		path := write(t, dir, "cut", string(whole[:length]))
		var fresh binfmt.Programs
		require.Subset(t, found, fresh.With(path)[1:], length)
	}
}
