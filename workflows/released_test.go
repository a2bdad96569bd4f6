package workflows_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// releasesDir has the histories that `make freeze` has kept: for each release an archive, and a list of checksums.
const (
	releasesDir = "testdata/releases"
	sumsFile    = "SHA256SUMS"
)

// releaseHeading matches the headings of releases in the changelog.
var releaseHeading = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\]`)

// releasedArchives returns the archives of all releases in the changelog. It returns an error if one is missing or is
// not as it was at its release.
func releasedArchives(kept fs.FS, changelog string) (archives map[string][]byte, err error) {
	sums, err := fs.ReadFile(kept, sumsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	archives = map[string][]byte{}
	for line := range strings.Lines(string(sums)) {
		sum, name, valid := strings.Cut(strings.TrimSpace(line), "  ")
		if !valid {
			return nil, fmt.Errorf("%s has the line %q", sumsFile, line)
		}
		archive, err := fs.ReadFile(kept, name)
		if err != nil {
			return nil, fmt.Errorf("the histories of a release must stay: %w", err)
		}
		if has := sha256.Sum256(archive); hex.EncodeToString(has[:]) != sum {
			return nil, fmt.Errorf("the histories of a release must stay as they are, and %s was changed", name)
		}
		archives[strings.TrimSuffix(name, ".tar.gz")] = archive
	}
	for _, heading := range releaseHeading.FindAllStringSubmatch(changelog, -1) {
		if archives["v"+heading[1]] == nil {
			return nil, fmt.Errorf("the histories of release %s are missing; `make freeze VERSION=v%s` keeps them", heading[1], heading[1])
		}
	}
	return archives, nil
}

// TestReleasedHistories replays the histories of every release. After a failure, chains from that release could not
// continue: give the change a marker (see docs/releasing.md). Never change or remove the histories.
func TestReleasedHistories(t *testing.T) {
	t.Parallel()
	changelog, err := os.ReadFile(filepath.Join("..", "CHANGELOG.md"))
	require.NoError(t, err)
	archives, err := releasedArchives(os.DirFS(releasesDir), string(changelog))
	require.NoError(t, err)
	for release, archive := range archives {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			unzipped, err := gzip.NewReader(bytes.NewReader(archive))
			require.NoError(t, err)
			replayed, reader := 0, tar.NewReader(unzipped)
			for {
				file, err := reader.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				history, err := client.HistoryFromJSON(reader, client.HistoryJSONOptions{})
				require.NoError(t, err, file.Name)
				require.NoError(t, replay(history), file.Name)
				replayed++
			}
			require.Positive(t, replayed)
		})
	}
}

// TestReleasedHistoriesStay checks that the removal or a change of a release's histories is noticed.
func TestReleasedHistoriesStay(t *testing.T) {
	t.Parallel()
	const changelog = "## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n"
	const name = "v0.1.0.tar.gz"
	sum := sha256.Sum256([]byte("histories"))
	sums := &fstest.MapFile{Data: []byte(hex.EncodeToString(sum[:]) + "  " + name + "\n")}
	archive := &fstest.MapFile{Data: []byte("histories")}
	for want, kept := range map[string]fstest.MapFS{
		"": {sumsFile: sums, name: archive},
		"the histories of a release must stay: open v0.1.0.tar.gz":                       {sumsFile: sums},
		"and v0.1.0.tar.gz was changed":                                                  {sumsFile: sums, name: {Data: []byte("other")}},
		"the histories of release 0.1.0 are missing; `make freeze VERSION=v0.1.0` keeps": {},
	} {
		archives, err := releasedArchives(kept, changelog)
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, archive.Data, archives["v0.1.0"])
			continue
		}
		require.ErrorContains(t, err, want)
	}
	_, err := releasedArchives(fstest.MapFS{}, "## [Unreleased]\n")
	require.NoError(t, err)
}
