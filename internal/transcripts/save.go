package transcripts

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"gocloud.dev/blob"
)

// Save archives the complete lines of the local file and reports whether there was anything
// new. It reads nothing and asks nobody if the file is as it was at the last Save. A missing
// file is nothing to save.
//
// Its error wraps ErrSuperseded if another writer's copy is the newer one. After any error the
// archive holds what it held before, and another Save may succeed.
func (c *Copy) Save(ctx context.Context) (bool, error) {
	if c.archive == nil {
		return false, nil
	}
	now, err := c.stamp()
	if err != nil || now == c.seen {
		return false, err
	}
	local, err := c.measure()
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
	case local.Lines < c.base.Lines: // a broken disk rather than a newer conversation
		return false, fmt.Errorf("the local file has shrunk from %d lines to %d; the archived copy is kept", c.base.Lines, local.Lines)
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

// mayFollow returns nil if local may begin the generation after latest, which another writer
// wrote and which holds archived: if it is known to go on from there, or is seen to. A version
// that is damaged stands in nobody's way.
func (c *Copy) mayFollow(latest version, archived, local extent) error {
	if latest == c.known || latest.generation < c.known.generation || archived.Lines == 0 {
		return nil
	}
	follows, err := c.startsWith(c.path, local, archived)
	if err != nil {
		return err
	}
	if !follows {
		return ErrSuperseded
	}
	return nil
}

// write makes local the content of version v, all of it or nothing.
func (c *Copy) write(ctx context.Context, v version, local extent) error {
	source, err := c.open()
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
		err = onDisk.Sync() // before the rename, so that a power cut leaves the old copy or the new one
	}
	if err != nil {
		abandon()          // an object whose context has ended is not put in place
		_ = object.Close() // it can only say that it was abandoned
		return err
	}
	return object.Close()
}

// saveTimeout bounds one Save of Watch, so that one call that hangs does not end the saving.
const saveTimeout = time.Minute

// Watch saves every interval until ctx ends. An error is told to failed, once as long as it
// stays the same, and the save is tried again. The last Save, when the writer of the transcript
// has ended, is the caller's.
func (c *Copy) Watch(ctx context.Context, interval time.Duration, failed func(error)) {
	if c.archive == nil {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := c.saveWithin(ctx, saveTimeout)
		if err == nil || ctx.Err() != nil {
			told = ""
		} else if err.Error() != told {
			told = err.Error()
			failed(err)
		}
	}
}

func (c *Copy) saveWithin(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := c.Save(ctx)
	return err
}
