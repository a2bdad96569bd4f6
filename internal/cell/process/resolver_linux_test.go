package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestResolver checks that a resolver finds the same places as filepath.EvalSymlinks, also for paths that it asks for
// twice.
func TestResolver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "real", "below"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "real", "file"), nil, 0o600))
	for link, target := range map[string]string{
		"link": "real", "chain": "link/below", "away": "/", "broken": "missing", "real/up": "..", "loop": "loop",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	paths := []string{"/", "/..", ".", "", "missing"}
	for _, below := range []string{
		"real", "real/", "real/file", "real/below", "real/.", "real/..", "real/up", "real/up/link/file", "link", "link/file",
		"link/below/", "link/below/..", "link/../link", "chain", "chain/..", "chain/../file", "away/etc", "broken", "broken/file",
		"loop", "loop/file", "missing", "missing/file", "real/file/below", "real//file",
	} {
		paths = append(paths, dir+"/"+below)
	}
	r := resolver{}
	for _, path := range append(paths, paths...) {
		want, wantErr := filepath.EvalSymlinks(path)
		found, err := r.resolve(path)
		require.Equal(t, want, found, path)
		require.Equal(t, wantErr == nil, err == nil, "%s: %v", path, err)
		require.Equal(t, errors.Is(wantErr, fs.ErrNotExist), errors.Is(err, fs.ErrNotExist), "%s: %v", path, err)
	}
}
