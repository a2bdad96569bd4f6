package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxEntries bounds how many directory entries are granted one by one. Each takes some microseconds. The
// entries of a directory that would exceed it are not granted.
const maxEntries = 4096

// grant is a path and what may be done with it and below it.
type grant struct {
	path  string
	write bool
}

// grants collects what a sandbox grants.
type grants struct {
	hidden []string
	list   []grant
	// entries counts directory entries that were granted one by one.
	entries int
	// skipped are directories whose entries were too many.
	skipped []string
}

// grantsOf returns what s grants, beside the devices.
func (s *Sandbox) grantsOf() *grants {
	g := &grants{hidden: append(hiddenPlaces(s.Hidden), deviceDir)}
	g.add("/", false)
	for _, path := range s.Readable {
		g.add(filepath.Clean(path), false)
	}
	for _, path := range s.Writable {
		g.add(filepath.Clean(path), true)
	}
	return g
}

// add grants path, but for what is hidden below it.
func (g *grants) add(path string, write bool) {
	if !g.holdsHidden(path) {
		g.list = append(g.list, grant{path, write})
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return
	}
	if g.entries+len(entries) > maxEntries {
		g.skipped = append(g.skipped, path)
		entries = slices.DeleteFunc(entries, func(entry fs.DirEntry) bool {
			return !g.holdsHidden(filepath.Join(path, entry.Name()))
		})
	}
	g.entries += len(entries)
	for _, entry := range entries {
		below := filepath.Join(path, entry.Name())
		// What a link leads to is granted by its own path, or not at all.
		if entry.Type()&fs.ModeSymlink == 0 && !slices.Contains(g.hidden, below) {
			g.add(below, write)
		}
	}
}

// holdsHidden reports whether something hidden lies below path, which itself does not count.
func (g *grants) holdsHidden(path string) bool {
	return slices.ContainsFunc(g.hidden, func(hidden string) bool { return hidden != path && below(path, hidden) })
}

// remark says what is not granted for its number.
func (g *grants) remark() string {
	if len(g.skipped) == 0 {
		return ""
	}
	return fmt.Sprintf("not readable, because they have too many entries: %s", strings.Join(g.skipped, ", "))
}

// below reports whether path is dir or lies below it. Both are absolute and clean.
func below(dir, path string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// hiddenPlaces returns the real paths of hidden ones, and where else their files are mounted.
func hiddenPlaces(paths []string) []string {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		table = nil
	}
	mounted := parseMounts(string(table))
	var places []string
	for _, path := range paths {
		resolved, err := filepath.EvalSymlinks(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // what is made there later is granted only with all of its directory
		case err == nil:
			path = resolved
		}
		if !filepath.IsAbs(path) || path == "/" { // a user's home may be that, and it is nothing to hide
			continue
		}
		places = append(places, path)
		places = append(places, mounted.aliases(path)...)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// mount is a part of a file system, and where it is to be found.
type mount struct {
	device string
	root   string // within the file system
	point  string
}

type mounts []mount

// parseMounts reads a table in the form of /proc/self/mountinfo.
func parseMounts(table string) (found mounts) {
	const deviceColumn, rootColumn, pointColumn = 2, 3, 4
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(table) {
		columns := strings.Fields(line)
		if len(columns) > pointColumn {
			found = append(found, mount{
				columns[deviceColumn], unescape.Replace(columns[rootColumn]), unescape.Replace(columns[pointColumn]),
			})
		}
	}
	return found
}

// aliases returns the other paths under which the files at path are found, or some of them.
func (m mounts) aliases(path string) (found []string) {
	at := m.holding(path)
	if at < 0 {
		return nil
	}
	inside := filepath.Join(m[at].root, strings.TrimPrefix(path, m[at].point))
	for i, other := range m {
		switch {
		case i == at || other.device != m[at].device || other.point == "/" && m[at].point == "/":
		case below(other.root, inside): // all of it is there
			found = append(found, filepath.Join(other.point, strings.TrimPrefix(inside, other.root)))
		case below(inside, other.root): // a part of it is there
			found = append(found, other.point)
		}
	}
	return slices.DeleteFunc(found, func(alias string) bool { return alias == path || alias == "/" })
}

// holding returns the index of the mount that path is in, the last one of those that lie over each other; -1 is none.
func (m mounts) holding(path string) int {
	best := -1
	for i, candidate := range m {
		if below(candidate.point, path) && (best < 0 || len(candidate.point) >= len(m[best].point)) {
			best = i
		}
	}
	return best
}
