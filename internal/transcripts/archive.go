package transcripts

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/google/uuid"
	"gocloud.dev/blob"
)

// None is the location that stands for no archive.
const None = "none"

var (
	// ErrNotFound says that a conversation is neither on this host nor in the archive.
	ErrNotFound = errors.New("the conversation is neither on this host nor in the archive")
	// ErrCorrupt says that the archive has a conversation and that no copy of it is intact.
	ErrCorrupt = errors.New("no archived copy of the conversation is intact")
	// ErrSuperseded says that somebody else has archived a copy which the local one does not
	// go on from. The local file is as it was.
	ErrSuperseded = errors.New("another writer has archived a newer copy of the conversation")
)

// Archive is where transcripts are kept. The nil Archive is none: it keeps nothing, and knows
// the local files only. Its methods may be called from several goroutines.
type Archive struct {
	bucket *blob.Bucket
	list   lister
}

// Open opens the archive at location: None, or the URL of a directory
// (file), an S3 (s3), Google Cloud Storage (gs) or Azure (azblob) bucket. A directory is
// created if it is missing, for its owner only; nothing else is touched, and no bucket is asked
// yet. Credentials come from where the cloud's own programs find them.
func Open(ctx context.Context, location string) (*Archive, error) {
	if location == None {
		return nil, nil //nolint:nilnil // the nil Archive is the one that keeps nothing
	}
	parsed, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("transcript archive: %w", err)
	}
	bucket, list, err := openBucket(ctx, parsed)
	if err != nil {
		return nil, fmt.Errorf("open the transcript archive %s: %w", location, err)
	}
	return &Archive{bucket: bucket, list: list}, nil
}

// Close releases what the archive holds. Copies of it cannot be used any more.
func (a *Archive) Close() error {
	if a == nil {
		return nil
	}
	return a.bucket.Close()
}

// Check returns why the archive cannot be read, or nil.
func (a *Archive) Check(ctx context.Context) error {
	if a == nil {
		return nil
	}
	if _, err := a.list(ctx, uuid.Nil.String()+"/"); err != nil {
		return fmt.Errorf("read the transcript archive: %w", err)
	}
	return nil
}

// Copy is the local copy of one session's transcript, as somebody who reads or writes it sees
// it. Who writes needs a Copy of its own: it is what tells one writer from another. It is for
// one goroutine at a time.
type Copy struct {
	archive   *Archive
	sessionID string
	path      string
	// writer names this Copy in the keys of what it saves.
	writer string
	// known is the latest version that the local file is known to go on from.
	known version
	// base is what of it is archived, as far as this Copy knows.
	base extent
	// as is how local files are used; nil is plainly.
	as func(func() error) error
	// seen is the local file as it was when it was last saved, or found to be saved.
	seen stamp
}

// As has all that c does with local files done by run, which calls what it is given and returns its error: with
// the rights of another user, whose files they are. It is called before c is used.
func (c *Copy) As(run func(func() error) error) { c.as = run }

// local does something with local files.
func (c *Copy) local(fn func() error) error {
	if c.as == nil {
		return fn()
	}
	return c.as(fn)
}

// Copy returns the copy of the conversation sessionID whose file is, or will be, path. It
// touches neither. The session id must be a UUID, which it always is for the CLI.
func (a *Archive) Copy(sessionID, path string) (*Copy, error) {
	id, err := uuid.Parse(sessionID)
	if err != nil {
		return nil, fmt.Errorf("transcript archive: the session id %q is not a UUID", sessionID)
	}
	return &Copy{archive: a, sessionID: id.String(), path: path, writer: uuid.NewString()}, nil
}
