package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Quota limits what a session may store in its own directories.
type Quota struct {
	// Bytes limits the space on the disk.
	Bytes int64
	// Files limits the number of files and directories.
	Files int
	// Depth limits the levels of directories. A tree that is deeper than that takes long to look through.
	Depth int
}

// Usage measures what a session stores.
type Usage struct {
	Bytes int64
	Files int
	Depth int
}

// Exceeds says which limit of q the usage exceeds; "" if none.
func (u *Usage) Exceeds(q Quota) string {
	const mebibyte = 1 << 20
	switch {
	case u.Bytes > q.Bytes:
		return fmt.Sprintf("more than %d MiB", q.Bytes/mebibyte)
	case u.Files > q.Files:
		return fmt.Sprintf("more than %d files", q.Files)
	case u.Depth > q.Depth:
		return fmt.Sprintf("directories more than %d levels deep", q.Depth)
	}
	return ""
}

// Measure adds what is stored in root to u. It stops as soon as the quota is exceeded, so its time is bounded. It skips
// what vanishes meanwhile.
func (u *Usage) Measure(root *os.Root, quota Quota) error {
	for waiting := []string{"."}; len(waiting) > 0 && u.Exceeds(quota) == ""; {
		last := len(waiting) - 1
		dir := waiting[last]
		waiting = waiting[:last]
		below, err := u.measureDir(root, dir, quota)
		if err != nil {
			return fmt.Errorf("measure what an agent stores: %w", err)
		}
		waiting = append(waiting, below...)
	}
	return nil
}

// measureDir adds the entries of a directory to u. It returns the directories among them.
func (u *Usage) measureDir(root *os.Root, dir string, quota Quota) (below []string, err error) {
	opened, err := root.Open(dir)
	if errors.Is(err, fs.ErrPermission) && Chmod(root, dir, dirMode) == nil { // an agent may not hide what it stores
		opened, err = root.Open(dir)
	}
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	for u.Exceeds(quota) == "" {
		entries, err := opened.ReadDir(entriesAtOnce)
		for _, entry := range entries {
			u.add(entry)
			if entry.IsDir() {
				below = append(below, filepath.Join(dir, entry.Name()))
				u.Depth = max(u.Depth, 1+strings.Count(below[len(below)-1], string(filepath.Separator)))
			}
		}
		if err != nil && !errors.Is(err, io.EOF) && !gone(err) {
			return nil, err
		}
		if err != nil {
			return below, nil
		}
	}
	return below, nil
}

// add counts an entry. A sparse file counts with the space that it takes.
func (u *Usage) add(entry fs.DirEntry) {
	const blockSize = 512
	u.Files++
	info, err := entry.Info()
	if err != nil {
		return
	}
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		u.Bytes += stat.Blocks * blockSize
	}
}

// gone reports whether err says that a directory vanished, was replaced, or was closed by its owner.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.ELOOP)
}
