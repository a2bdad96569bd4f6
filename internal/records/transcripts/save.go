package transcripts

import (
	"context"
	"fmt"
	"io"
	"os"

	"gocloud.dev/blob"
)

// Save archives the complete lines of the local file and reports whether there were new lines. If the file has not
// changed since the last Save, Save neither reads the file nor calls the storage. A missing file is not an error.
//
// If another writer's copy is newer, the error wraps ErrSuperseded. After any error the archive is unchanged, and Save
// can be called again.
func (c *Copy) Save(ctx context.Context) (bool, error) {
	if c.archive == nil {
		return false, nil
	}
	now, err := stampOf(c.path)
	if err != nil || now == c.seen {
		return false, err
	}
	local, err := measure(c.path)
	if err != nil {
		return false, err
	}
	saved, err := c.saveExtent(ctx, local)
	if err != nil {
		return false, fmt.Errorf("archive the conversation %s: %w", c.sessionID, err)
	}
	c.seen = now
	return saved, nil
}

func (c *Copy) saveExtent(ctx context.Context, local extent) (bool, error) {
	switch {
	case local.Lines == 0 || local == c.base:
		return false, nil
	case local.Lines < c.base.Lines: // indicates a broken disk, not a newer conversation
		return false, fmt.Errorf("the local file has shrunk from %d lines to %d; the archived copy is kept",
			c.base.Lines, local.Lines)
	}
	latest, archived, err := c.latest(ctx)
	if err != nil {
		return false, err
	}
	if archived == local {
		return false, nil
	}
	target := latest
	if latest.writer != c.writer {
		if err := c.mayFollow(latest, archived, local); err != nil {
			return false, err
		}
		target = version{generation: latest.generation + 1, writer: c.writer}
	}
	if err := c.write(ctx, target, local); err != nil {
		return false, err
	}
	c.known, c.base = target, local
	return true, nil
}

// mayFollow returns nil if the local file may be saved as the generation after latest, a version by another writer.
// The argument archived is the extent of that version. If the local file does not continue that version, as known
// from Restore or by comparison, the error is ErrSuperseded. If latest is damaged, every writer may save.
func (c *Copy) mayFollow(latest version, archived, local extent) error {
	if latest == c.known || latest.generation < c.known.generation || archived.Lines == 0 {
		return nil
	}
	follows, err := startsWith(c.path, local, archived)
	if err != nil {
		return err
	}
	if !follows {
		return ErrSuperseded
	}
	return nil
}

// write stores local as the content of version v, completely or not at all.
func (c *Copy) write(ctx context.Context, v version, local extent) error {
	source, err := os.Open(c.path)
	if err != nil {
		return fmt.Errorf("read the transcript: %w", err)
	}
	defer closeRead(source)
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	var onDisk *os.File
	object, err := c.archive.bucket.NewWriter(ctx, c.key(v), &blob.WriterOptions{
		ContentType: "application/zstd",
		BeforeWrite: func(as func(any) bool) error {
			if as(&onDisk) { // the archive is a directory
				return onDisk.Chmod(0o600)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	h := header{Format: format, SessionID: c.sessionID, extent: local}
	err = encode(object, h, io.LimitReader(source, local.Bytes))
	if err == nil && onDisk != nil {
		err = onDisk.Sync() // sync before the rename, so that a power cut leaves the old copy or the new one
	}
	if err != nil {
		abandon()          // the storage discards an object whose context has ended
		_ = object.Close() // the error says no more than that the object was abandoned
		return err
	}
	return object.Close()
}
