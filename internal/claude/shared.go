package claude

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ShareTranscripts makes two working directories share their conversations. Afterwards the CLI can resume a
// conversation of one directory in the other. Both directories must exist.
//
// The CLI keeps the transcripts of each working directory in a separate directory. ShareTranscripts replaces the first
// working directory's transcript directory by a symbolic link to that of the second. If the first already has
// transcripts, they are kept under another name.
func (c *CLI) ShareTranscripts(dir, with string) error {
	link, target, err := c.transcriptDirs(dir, with)
	if err != nil || link == target {
		return err
	}
	return c.asUser(func() error {
		if err := os.MkdirAll(target, 0o700); err != nil {
			return err
		}
		name := filepath.Base(target) // relative, so that the CLI's directory can be moved
		if found, err := os.Readlink(link); err == nil {
			if found == name {
				return nil
			}
			if err := os.Remove(link); err != nil {
				return err
			}
		}
		if err := os.Rename(link, link+"."+rand.Text()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.Symlink(name, link)
	})
}

// UnshareTranscripts removes the link that ShareTranscripts has made for dir. Without a link it does nothing.
func (c *CLI) UnshareTranscripts(dir string) error {
	link, _, err := c.transcriptDirs(dir, dir)
	if err != nil {
		return err
	}
	return c.asUser(func() error {
		if _, err := os.Readlink(link); err != nil {
			return nil //nolint:nilerr // not a link, or not there
		}
		return os.Remove(link)
	})
}

// transcriptDirs returns the directories in which the CLI keeps the transcripts of two working directories.
func (c *CLI) transcriptDirs(first, second string) (ofFirst, ofSecond string, err error) {
	const sample = "00000000-0000-4000-8000-000000000000" // the id of a conversation does not matter here
	one, err := c.TranscriptPath(first, sample)
	if err != nil {
		return "", "", err
	}
	other, err := c.TranscriptPath(second, sample)
	return filepath.Dir(one), filepath.Dir(other), err
}
