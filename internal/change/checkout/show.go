package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/process"
)

const (
	// maxShown limits the files that Show writes, in bytes. A session stores them in its own directory.
	maxShown = 256 << 20
	// maxShownList limits the list of these files, in bytes: about 50,000 files.
	maxShownList = 8 << 20
)

// Show writes the files of a checkpoint's commit, and no others, into a new directory below parent, and returns its
// path. Git executes nothing, and the directory is no worktree. The directory parent must belong to the agents' user.
func (k *Keeper) Show(ctx context.Context, directory string, from Checkpoint, parent string) (string, error) {
	in, err := k.holding(ctx, directory, from)
	if err != nil {
		return "", err
	}
	if err := k.git.checkSize(ctx, where{repository: in}, from.Commit); err != nil {
		return "", err
	}
	dir := filepath.Join(parent, "commit-"+from.Commit)
	if err := process.AsUser(k.options.User, func() error { return os.Mkdir(dir, 0o700) }); err != nil {
		return "", err
	}
	at := inTree(&Worktree{repository: in, Guarded: Paths{Top: dir, GitDir: in.dir, Common: in.dir}})
	at.index, at.writable = dir+".index", []string{parent}
	for _, args := range [][]string{{"read-tree", from.Commit}, {"checkout-index", "--all", "--quiet"}} {
		if _, err := k.git.run(ctx, at, args); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// checkSize returns an error if a commit has more than Show writes.
func (g git) checkSize(ctx context.Context, at where, commit string) error {
	list := limited{most: maxShownList + 1}
	if err := g.write(ctx, at, []string{"ls-tree", "-r", "-l", "-z", "--full-tree", commit}, nil, &list); err != nil {
		return err
	}
	if len(list.kept) > maxShownList {
		return errors.New("it has too many files")
	}
	var sum int64
	for entry := range strings.SplitSeq(string(list.kept), "\x00") {
		about, _, _ := strings.Cut(entry, "\t")
		if fields := strings.Fields(about); len(fields) == 4 && fields[1] == "blob" {
			size, err := strconv.ParseInt(fields[3], 10, 64)
			if err != nil {
				return err
			}
			sum += size
		}
	}
	if sum > maxShown {
		return fmt.Errorf("its files have %d MiB together, more than %d", sum>>20, maxShown>>20)
	}
	return nil
}
