package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/process/treeinit"
)

// deviceDir is hidden in every sandbox, because it also contains disks and memory. An init grants only the usual
// devices in this directory.
const deviceDir = "/dev"

// maxEntries limits the directory entries that are granted one by one, because each grant takes some microseconds. If
// the entries of a directory would exceed the limit, only those entries are kept below which a path is hidden. Their
// own entries are then granted one by one.
const maxEntries = 4096

// grants collects the paths that the programs in a sandbox may use.
type grants struct {
	hidden []string
	list   []treeinit.Grant
	// entries counts directory entries that were granted one by one.
	entries int
	// skipped lists the directories that have too many entries.
	skipped []string
}

// forInit converts s to the form that an init reads. Some directories have to be granted entry by entry. forInit lists
// the entries that these directories have now. If a symbolic link later replaces an entry, the link is not granted.
func (s *Sandbox) forInit() (*treeinit.Sandbox, error) {
	calls, err := filter()
	if s.Offline {
		calls, err = offlineFilter()
	}
	opens, openErr := s.Opens.forInit()
	granted := s.grantsOf()
	return &treeinit.Sandbox{
		Required: s.Required, Judged: s.Judged, Grants: granted.list, Executable: s.Executable,
		Capabilities: s.keptCapabilities(), Filter: string(calls),
		Remark:  joinRemarks(s.executionRemark(), granted.remark()),
		Signals: s.Signals, Setuid: s.Setuid, Opens: opens,
	}, errors.Join(err, openErr)
}

// grantsOf returns the grants of s. It omits the devices, which the init adds.
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

// add grants path, except for the hidden paths below it.
func (g *grants) add(path string, write bool) {
	if !g.holdsHidden(path) {
		g.list = append(g.list, treeinit.Grant{Path: path, Write: write})
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
		// Skip a symbolic link. The file to which the link points is granted if that file's own path is granted.
		if entry.Type()&fs.ModeSymlink == 0 && !slices.Contains(g.hidden, below) {
			g.add(below, write)
		}
	}
}

// holdsHidden reports whether a hidden path lies below path. The path itself does not count.
func (g *grants) holdsHidden(path string) bool {
	return slices.ContainsFunc(g.hidden, func(hidden string) bool { return hidden != path && below(path, hidden) })
}

// remark returns a text that names the directories in g.skipped and says why they are not granted. The text is "" if
// there are none.
func (g *grants) remark() string {
	if len(g.skipped) == 0 {
		return ""
	}
	return fmt.Sprintf("not readable, because they have too many entries: %s", strings.Join(g.skipped, ", "))
}

// joinRemarks joins the remarks that are not empty.
func joinRemarks(remarks ...string) string {
	return strings.Join(slices.DeleteFunc(remarks, func(remark string) bool { return remark == "" }), "; ")
}

// below reports whether path is dir or lies below it. Both paths must be absolute and clean.
func below(dir, path string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// hiddenPlaces resolves the symbolic links in paths. It returns the results, and all other paths at which the same
// files are mounted.
func hiddenPlaces(paths []string) []string {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		table = nil
	}
	mounted := parseMounts(string(table))
	links := resolver{}
	var places []string
	for _, path := range paths {
		resolved, err := links.resolve(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // a file created at path later is readable only if a rule grants the whole directory
		case err == nil:
			path = resolved
		}
		if !filepath.IsAbs(path) || path == "/" { // the home of some users is "/", which cannot be hidden
			continue
		}
		places = append(places, path)
		places = append(places, mounted.aliases(path)...)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// mount is a part of a file system, and the path where it is mounted.
type mount struct {
	device string
	root   string // path of the mounted part within the file system
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

// aliases returns the other paths under which files at path, or below it, are also mounted.
func (m mounts) aliases(path string) (found []string) {
	at := m.holding(path)
	if at < 0 {
		return nil
	}
	inside := filepath.Join(m[at].root, strings.TrimPrefix(path, m[at].point))
	for i, other := range m {
		switch {
		case i == at || other.device != m[at].device || other.point == "/" && m[at].point == "/":
		case below(other.root, inside): // mounted as a whole
			found = append(found, filepath.Join(other.point, strings.TrimPrefix(inside, other.root)))
		case below(inside, other.root): // mounted in part
			found = append(found, other.point)
		}
	}
	return slices.DeleteFunc(found, func(alias string) bool { return alias == path || alias == "/" })
}

// holding returns the index of the mount that contains path, or -1. If several mounts contain path, the mount with the
// longest mount point counts. Of mounts with equal mount points, the last one counts.
func (m mounts) holding(path string) int {
	best := -1
	for i, candidate := range m {
		if below(candidate.point, path) && (best < 0 || len(candidate.point) >= len(m[best].point)) {
			best = i
		}
	}
	return best
}
