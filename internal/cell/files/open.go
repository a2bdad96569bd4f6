package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrForeign means that an agent has put something at a path that is not a plain file of its own: a link, a device, a
// directory, a file with a second name, or a file of another user.
var ErrForeign = errors.New("it is no plain file of the agents' user")

// AnyOwner accepts the files of every user.
const AnyOwner = -1

// Open opens the plain file name in root for reading. The argument owner is the number of the user to whom the file
// must belong, or AnyOwner. If the file is something else, the error wraps ErrForeign.
//
// The file can still change while it is read. So a caller must not read it twice and expect the same content.
func Open(root *os.Root, name string, owner int) (_ *os.File, err error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := checkPlain(info, owner); err != nil {
		return nil, err
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	opened, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(info, opened) {
		return nil, fmt.Errorf("%w: it was replaced while it was opened", ErrForeign)
	}
	return file, checkPlain(opened, owner)
}

// checkPlain returns an error that wraps ErrForeign if info is not that of a plain file of the owner.
func checkPlain(info os.FileInfo, owner int) error {
	if !info.Mode().IsRegular() {
		return ErrForeign
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return nil
	}
	if stat.Nlink > 1 {
		return fmt.Errorf("%w: it has %d names", ErrForeign, stat.Nlink)
	}
	if owner != AnyOwner && int(stat.Uid) != owner {
		return fmt.Errorf("%w: it belongs to user %d", ErrForeign, stat.Uid)
	}
	return nil
}

// Reader returns a reader of r that fails when ctx ends. A sparse file of some terabytes takes minutes to read.
func Reader(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context //nolint:containedctx // io.Reader has no parameter for it
	r   io.Reader
}

// Read implements io.Reader.
func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
