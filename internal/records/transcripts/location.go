package transcripts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
)

// dirMode is the mode of directories. Only the owner has access, because transcripts contain everything that an
// agent has read.
const dirMode = 0o700

// lister returns the names of the objects whose keys begin with prefix, without the prefix. The prefix must end with
// a slash.
type lister func(ctx context.Context, prefix string) ([]string, error)

func openBucket(ctx context.Context, location *url.URL) (*blob.Bucket, lister, error) {
	if location.Scheme != fileblob.Scheme {
		if !blob.DefaultURLMux().ValidBucketScheme(location.Scheme) {
			return nil, nil, fmt.Errorf("this program was built without a driver for %s: build it with `make build`",
				location.Scheme)
		}
		bucket, err := blob.OpenBucket(ctx, location.String())
		return bucket, bucketLister(bucket), err
	}
	bucket, err := fileblob.OpenBucket(location.Path, &fileblob.Options{
		CreateDir:   true,
		DirFileMode: dirMode,
		NoTempDir:   true, // a rename is atomic within one file system only
		// The object itself contains its metadata: see the package documentation.
		Metadata: fileblob.MetadataDontWrite,
	})
	return bucket, directoryLister(location.Path), err
}

func bucketLister(bucket *blob.Bucket) lister {
	return func(ctx context.Context, prefix string) ([]string, error) {
		var names []string
		objects := bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			object, err := objects.Next(ctx)
			if errors.Is(err, io.EOF) {
				return names, nil
			}
			if err != nil {
				return nil, err
			}
			names = append(names, object.Key[len(prefix):])
		}
	}
}

// directoryLister replaces the library's own listing for directories. The library skips entries that it cannot read. An
// unreadable conversation would then look like a conversation that was never archived. The library also fails if
// another writer's temporary file vanishes during the listing.
func directoryLister(root string) lister {
	return func(_ context.Context, prefix string) ([]string, error) {
		if _, err := os.Stat(root); err != nil { // a missing archive must not look empty
			return nil, err
		}
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(prefix)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		names := make([]string, 0, len(entries))
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names, nil
	}
}
