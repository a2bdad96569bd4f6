package checkout

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // git's own hash
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maxTree limits the list of the files of a commit, in bytes.
const maxTree = 64 << 20

// verify returns an error if an object of these commits, or of their files, has not the hash under which git keeps it.
// Git itself does not compare them when it reads, and agents can write all objects of a repository. What is pushed is
// compared by the remote, so it is only what is shown here if it is verified here.
func (g git) verify(ctx context.Context, at where, commits ...string) error {
	objects := map[string]bool{}
	roots := map[string]string{}
	for _, commit := range commits {
		if commit == "" || objects[commit] {
			continue
		}
		root, err := g.run(ctx, at, []string{"rev-parse", "--verify", commit + "^{tree}"})
		if err != nil {
			return err
		}
		listed := limited{most: maxTree}
		if err := g.write(ctx, at, []string{"ls-tree", "-r", "-t", "-z", "--full-tree", commit}, nil,
			&listed); err != nil {
			return err
		}
		if len(listed.kept) == maxTree {
			return fmt.Errorf("%s has too many files to be verified", commit)
		}
		objects[commit], objects[root], roots[commit] = true, true, root
		for entry := range strings.SplitSeq(string(listed.kept), "\x00") {
			description, _, _ := strings.Cut(entry, "\t")
			if _, of, is := strings.Cut(description, " "); is {
				if kind, id, _ := strings.Cut(of, " "); kind != "commit" { // a submodule is in another repository
					objects[id] = true
				}
			}
		}
	}
	names := strings.Join(slices.Sorted(maps.Keys(objects)), "\n") + "\n"
	verifier := &verifier{roots: roots}
	err := g.write(ctx, at, []string{"cat-file", "--batch"}, strings.NewReader(names), verifier)
	switch {
	case verifier.problem != "":
		return fmt.Errorf("%s: somebody has changed the repository's objects; git fsck lists the damage",
			verifier.problem)
	case err != nil:
		return err
	case verifier.count != len(objects):
		return fmt.Errorf("git has shown %d of %d objects", verifier.count, len(objects))
	}
	return nil
}

// verifier reads the output of git cat-file --batch: for each object a line with its name, its type and its size, then
// its content and a line break.
type verifier struct {
	// roots maps commits to the trees of their files.
	roots map[string]string

	header  []byte
	id      string
	digest  hash.Hash
	left    int // of the content and the line break
	first   []byte
	count   int
	problem string
}

// Write implements io.Writer.
func (v *verifier) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 && v.problem == "" {
		if v.digest == nil {
			line, rest, whole := bytes.Cut(p, []byte{'\n'})
			v.header, p = append(v.header, line...), rest
			if whole {
				v.begin(string(v.header))
				v.header = nil
			}
			continue
		}
		now := min(len(p), v.left)
		content := p[:min(now, max(v.left-1, 0))] // without the line break
		_, _ = v.digest.Write(content)
		v.first = append(v.first, content[:min(len(content), maxFirst-len(v.first))]...)
		v.left, p = v.left-now, p[now:]
		if v.left == 0 {
			v.end()
		}
	}
	return all, nil
}

// maxFirst is the length of the line of a commit that names its tree, at most.
const maxFirst = 80

// begin reads the line before an object.
func (v *verifier) begin(header string) {
	fields := strings.Fields(header)
	if len(fields) != 3 {
		v.problem = "git does not show the object " + header
		return
	}
	size, err := strconv.Atoi(fields[2])
	if err != nil {
		v.problem = "git does not show the object " + header
		return
	}
	v.id, v.left, v.first, v.digest = fields[0], size+1, v.first[:0], sha1.New() //nolint:gosec // git's own hash
	if len(v.id) == hex.EncodedLen(sha256.Size) {
		v.digest = sha256.New()
	}
	_, _ = fmt.Fprintf(v.digest, "%s %d\x00", fields[1], size)
}

// end compares an object with its name.
func (v *verifier) end() {
	if found := hex.EncodeToString(v.digest.Sum(nil)); found != v.id {
		v.problem = fmt.Sprintf("the object %s has the hash %s", v.id, found)
	}
	root, is := v.roots[v.id]
	if line, _, _ := strings.Cut(string(v.first), "\n"); is && line != "tree "+root {
		v.problem = fmt.Sprintf("the commit %s has not the files %s", v.id, root)
	}
	v.digest = nil
	v.count++
}
