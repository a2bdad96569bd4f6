package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(directory, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600))
	}
	write("docs/a.md", "# A: `up`, and more\n\n## Twice\n\n## Twice\n\n[up](../README.md) [here](#twice-1) [a](a.md#a-up-and-more)\n")
	write("README.md", "# R\n\n[a](docs/a.md#twice) ![p](docs/a.md) <https://example.org> [b](docs/b.md) [c](docs/a.md#none) [d](https://example.org/#x)\n\n    [code](none.md)\n")
	var out strings.Builder
	require.Equal(t, 1, run(directory, []string{"README.md", "docs/a.md"}, &out))
	require.Equal(t, "README.md: the link docs/b.md leads to no file\nREADME.md: the link docs/a.md#none leads to no heading\n", out.String())

	out.Reset()
	write("README.md", strings.Repeat("word ", maxReadme+1))
	require.Equal(t, 1, run(directory, []string{"README.md"}, &out))
	require.Contains(t, out.String(), "README.md has 1201 words, and at most 1200 are allowed")

	out.Reset()
	write("README.md", "[a](docs/a.md)")
	require.Zero(t, run(directory, []string{"README.md", "docs/a.md"}, &out), out.String())
}
