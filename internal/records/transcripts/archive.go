package transcripts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"
)

// None is the location that disables the archive.
const None = "none"

var (
	// ErrNotFound means that the conversation is neither on this host nor in the archive.
	ErrNotFound = errors.New("the conversation is neither on this host nor in the archive")
	// ErrCorrupt means that the archive has copies of the conversation, but all of them are damaged.
	ErrCorrupt = errors.New("no archived copy of the conversation is intact")
	// ErrSuperseded means that another writer has archived a copy, and the local file does not continue that copy. The
	// local file is unchanged.
	ErrSuperseded = errors.New("another writer has archived a newer copy of the conversation")
)

// Archive stores transcripts. A nil Archive stores nothing and uses only the local files. Several goroutines can call
// its methods.
type Archive struct {
	bucket *blob.Bucket
	list   lister
	// dir is the directory of the archive; empty if the archive is a bucket.
	dir string
}

// Open opens the archive at location: None, or the URL of a directory (file) or of an S3 (s3), Google Cloud Storage
// (gs) or Azure (azblob) bucket. Open creates a missing directory, accessible to its owner only. It changes nothing
// else, and does not connect to a bucket. Open takes credentials from the same places as the cloud's own programs.
func Open(ctx context.Context, location string) (*Archive, error) {
	if location == None {
		return nil, nil //nolint:nilnil // a nil Archive stores nothing
	}
	parsed, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("transcript archive: %w", err)
	}
	bucket, list, err := openBucket(ctx, parsed)
	if err != nil {
		return nil, fmt.Errorf("open the transcript archive %s: %w", location, err)
	}
	archive := &Archive{bucket: bucket, list: list}
	if parsed.Scheme == fileblob.Scheme {
		archive.dir = parsed.Path
	}
	return archive, nil
}

// Close releases the archive's resources. After that, do not use the archive or its Copies.
func (a *Archive) Close() error {
	if a == nil {
		return nil
	}
	return a.bucket.Close()
}

// Check returns an error if the archive cannot be read.
func (a *Archive) Check(ctx context.Context) error {
	if a == nil {
		return nil
	}
	if _, err := a.list(ctx, uuid.Nil.String()+"/"); err != nil {
		return fmt.Errorf("read the transcript archive: %w", err)
	}
	return nil
}

// Remove removes all copies of the conversation sessionID. If there are no copies, Remove does nothing.
func (a *Archive) Remove(ctx context.Context, sessionID string) error {
	if a == nil {
		return nil
	}
	id, err := uuid.Parse(sessionID)
	if err != nil {
		return nil //nolint:nilerr // only UUIDs are archived
	}
	names, err := a.list(ctx, id.String()+"/")
	for _, name := range names {
		if err == nil && versionName.MatchString(name) {
			if err = a.bucket.Delete(ctx, id.String()+"/"+name); gcerrors.Code(err) == gcerrors.NotFound {
				err = nil
			}
		}
	}
	if err != nil {
		return fmt.Errorf("remove conversation %s from the transcript archive: %w", id, err)
	}
	if a.dir != "" {
		_ = os.Remove(filepath.Join(a.dir, id.String())) // the directory may be gone, or hold other files
	}
	return nil
}

// Copy gives one reader or writer access to the local file of a session's transcript. Each writer needs its own Copy,
// because the Copy identifies the writer. Only one goroutine may use a Copy at a time.
type Copy struct {
	archive   *Archive
	sessionID string
	path      string
	// writer identifies this Copy. The keys of the objects that this Copy writes contain it.
	writer string
	// known is the latest archived version that the local file continues.
	known version
	// base is the extent of the archived version in known, if this Copy has learned that extent.
	base extent
	// seen is the stamp that the local file had when it was last saved, or last found to be saved already.
	seen stamp
}

// Copy returns the Copy of the conversation sessionID, with its local file at path. The file need not exist. Copy
// accesses neither the file nor the archive. sessionID must be a UUID, like every session id of the CLI.
func (a *Archive) Copy(sessionID, path string) (*Copy, error) {
	id, err := uuid.Parse(sessionID)
	if err != nil {
		return nil, fmt.Errorf("transcript archive: the session id %q is not a UUID", sessionID)
	}
	return &Copy{archive: a, sessionID: id.String(), path: path, writer: uuid.NewString()}, nil
}
