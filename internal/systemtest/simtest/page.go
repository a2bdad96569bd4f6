package simtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var shellBlock = regexp.MustCompile("(?s)\n```sh\n(.*?)\n```\n")

// RunSection runs the blocks of shell commands in a section of a page in docs, all in one shell. It stops at the first
// command that fails.
func RunSection(t testing.TB, page, heading, directory string, environ []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ModuleRoot(t), "docs", page))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	require.True(t, found, "%s has no section %q", page, heading)
	section, _, _ = strings.Cut(section, "\n##")
	lines := []string{"set -eu"}
	for _, block := range shellBlock.FindAllStringSubmatch(section+"\n", -1) {
		lines = append(lines, block[1])
	}
	require.Greater(t, len(lines), 1, "section %q of %s has no commands", heading, page)
	shell := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(lines, "\n"))
	shell.Dir, shell.Env = directory, environ
	output, err := shell.CombinedOutput()
	require.NoError(t, err, "%s\n%s", strings.Join(lines, "\n"), output)
}
