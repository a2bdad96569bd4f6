package claude

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ShareTranscripts makes the CLI keep the transcripts of the working directory dir together with those of the working
// directory with. A conversation of one directory can then be resumed in the other. Both must exist.
//
// The CLI finds a conversation by the working directory: each has a directory of its own for transcripts.
// ShareTranscripts replaces that of dir by a symbolic link. If dir has transcripts of its own already, they are kept
// under another name.
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

// UnshareTranscripts removes the link that ShareTranscripts has made for dir. It does nothing if there is none.
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
