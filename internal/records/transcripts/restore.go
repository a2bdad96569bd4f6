package transcripts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Restored is the result of Restore.
type Restored struct {
	// Outcome names the copy that is now at the local path.
	Outcome Outcome
	// Damaged lists the errors of the archived copies that were skipped, latest first.
	Damaged []error
	// SetAside is the new path of a local file that had diverged from the archived copy; empty if there was no such
	// file.
	SetAside string
}

// Outcome names the copy that Restore chose.
type Outcome string

// The outcomes.
const (
	// KeptLocal means that the local file is as new as the archive or newer.
	KeptLocal Outcome = "kept_local"
	// FromArchive means that the archived copy replaced a missing or older local file.
	FromArchive Outcome = "from_archive"
)

// Restore replaces the local file if the archive has a newer copy of the conversation. It replaces the file atomically
// or not at all. It uses only content that has the right hash.
//
// If there is no copy, the error wraps ErrNotFound. If all archived copies are damaged, the error wraps ErrCorrupt.
// After any other error the file at the path can be older than the archive.
func (c *Copy) Restore(ctx context.Context) (Restored, error) {
	restored, err := c.restore(ctx)
	if err != nil {
		return Restored{}, fmt.Errorf("restore the conversation %s: %w", c.sessionID, err)
	}
	return restored, nil
}

func (c *Copy) restore(ctx context.Context) (Restored, error) {
	now, err := stampOf(c.path)
	if err != nil {
		return Restored{}, err
	}
	local, err := measure(c.path)
	if err != nil {
		return Restored{}, err
	}
	var all []version
	if c.archive != nil {
		if all, err = c.versions(ctx); err != nil {
			return Restored{}, err
		}
	}
	var restored Restored
	for _, v := range all {
		restored.Outcome, err = c.restoreFrom(ctx, v, local, &restored.SetAside)
		if err == nil {
			c.known = all[0]
			return restored, nil
		}
		if !errors.Is(err, errDamaged) {
			return Restored{}, err
		}
		restored.Damaged = append(restored.Damaged, err)
	}
	switch {
	case now.size > 0:
		restored.Outcome = KeptLocal
		if len(all) > 0 {
			c.known = all[0]
		}
		return restored, nil
	case len(all) > 0:
		return Restored{}, fmt.Errorf("%w: %w", ErrCorrupt, errors.Join(restored.Damaged...))
	default:
		return Restored{}, ErrNotFound
	}
}

// restoreFrom compares the local file with version v. If v is newer, restoreFrom replaces the file. If v is unusable,
// the error wraps errDamaged.
func (c *Copy) restoreFrom(ctx context.Context, v version, local extent, setAside *string) (Outcome, error) {
	archived, err := c.header(ctx, v)
	if err != nil {
		return "", err
	}
	follows, err := startsWith(c.path, local, archived.extent)
	if err != nil {
		return "", err
	}
	if follows {
		c.base = archived.extent
		return KeptLocal, nil
	}
	fetched, err := c.fetch(ctx, v)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(fetched.path) }() // after putInPlace there is nothing left to remove
	older, err := startsWith(fetched.path, fetched.extent, local)
	if err != nil {
		return "", err
	}
	if !older {
		aside := fmt.Sprintf("%s.superseded-%.12s", c.path, local.SHA256)
		if err := os.Rename(c.path, aside); err != nil {
			return "", fmt.Errorf("set the local transcript aside: %w", err)
		}
		*setAside = aside
	}
	if err := putInPlace(fetched.path, c.path); err != nil {
		return "", err
	}
	c.base = fetched.extent
	return FromArchive, nil
}

// fetchedFile is a complete copy from the archive in the transcript's directory.
type fetchedFile struct {
	path string
	extent
}

// fetch downloads version v into a temporary file beside the transcript, verifies it and syncs it to disk.
func (c *Copy) fetch(ctx context.Context, v version) (_ fetchedFile, err error) {
	object, err := c.archive.bucket.NewReader(ctx, c.key(v), nil)
	if err != nil {
		return fetchedFile{}, fmt.Errorf("read the archived copy %s: %w", c.key(v), err)
	}
	defer func() { _ = object.Close() }()
	file, err := c.createTemporary()
	if err != nil {
		return fetchedFile{}, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	h, err := decode(file, &source{Reader: object}, c.sessionID)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fetchedFile{}, fmt.Errorf("archived copy %s: %w", c.key(v), err)
	}
	return fetchedFile{path: file.Name(), extent: h.extent}, nil
}

// leftoverAge is the age from which a temporary file counts as abandoned. A restore takes seconds.
const leftoverAge = time.Hour

// createTemporary creates a file for a download in the transcript's directory. It also removes temporary files that
// killed processes have left there. The CLI ignores all of these files, because their names do not end like those of
// transcripts.
func (c *Copy) createTemporary() (*os.File, error) {
	dir := filepath.Dir(c.path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("make the directory of the transcript: %w", err)
	}
	prefix := ".restoring-" + c.sessionID + "-"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the directory of the transcript: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > leftoverAge {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // an error does not matter: the file only wastes space
		}
	}
	file, err := os.CreateTemp(dir, prefix+"*")
	if err != nil {
		return nil, fmt.Errorf("make a file beside the transcript: %w", err)
	}
	return file, nil
}

// putInPlace renames a file that is already synced to disk, and syncs the rename to disk as well.
func putInPlace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("put the transcript in place: %w", err)
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return fmt.Errorf("put the transcript in place: %w", err)
	}
	defer closeRead(dir)
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("put the transcript in place: %w", err)
	}
	return nil
}
