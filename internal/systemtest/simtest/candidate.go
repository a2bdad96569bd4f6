package simtest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// candidatePath is the path of a CLI to test instead of the pinned CLIs. Every test binary that links this package has
// the flag.
var candidatePath = flag.String("claude", "",
	"run the tests of the real CLI on the one at this `path` instead of the pinned ones")

// candidate is the CLI of the flag -claude.
type candidate struct {
	path   string
	number string
	// nearest is the release whose contract the candidate must meet.
	nearest claudesim.Version
}

// asked caches the candidate. The first test that needs the candidate creates it.
var asked struct {
	sync.Once

	candidate candidate
	err       error
}

// theCandidate returns the CLI of the flag -claude; nil without the flag.
func theCandidate(t testing.TB) *candidate {
	t.Helper()
	if *candidatePath == "" {
		return nil
	}
	asked.Do(func() { asked.candidate, asked.err = newCandidate(t, *candidatePath) })
	require.NoError(t, asked.err, "-claude")
	return &asked.candidate
}

// versions returns the releases to test: all releases if c is nil, and otherwise only the release nearest to c.
func (c *candidate) versions() []claudesim.Version {
	if c == nil {
		return []claudesim.Version{claudesim.VersionOld, claudesim.VersionNew}
	}
	return []claudesim.Version{c.nearest}
}

// name returns the version number that the tested CLI of a release reports. If c replaces that release, this is the
// number of c.
func (c *candidate) name(version claudesim.Version) string {
	if c == nil || c.nearest != version {
		return string(version)
	}
	return c.number
}

// playing returns a copy of s that makes the stand-in simulate a release. If c replaces that release, the stand-in
// reports the version of c.
func (c *candidate) playing(s claudesim.Scenario, version claudesim.Version) claudesim.Scenario {
	s = s.As(version)
	if name := c.name(version); name != string(version) {
		s.ClaimedVersion = name
	}
	return s
}

var versionNumber = regexp.MustCompile(`\b\d+\.\d+\.\d+\b`)

// newCandidate runs the CLI at path to read its version.
func newCandidate(t testing.TB, path string) (candidate, error) {
	t.Helper()
	if !filepath.IsAbs(path) {
		return candidate{}, fmt.Errorf("%q is not an absolute path, and each package is tested in its own directory",
			path)
	}
	command := exec.CommandContext(t.Context(), path, "--version")
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	printed, err := command.Output()
	if err != nil {
		return candidate{}, fmt.Errorf("%s --version: %w", path, err)
	}
	c := candidate{path: path, number: versionNumber.FindString(string(printed))}
	if c.nearest, err = claudesim.Nearest(c.number); err != nil {
		return candidate{}, fmt.Errorf("%s --version printed %q: %w", path, printed, err)
	}
	return c, nil
}
