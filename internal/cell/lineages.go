package cell

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// maxLineages limits the lineages in memory. A long conversation of ten megabytes takes about two.
const maxLineages = 8

// lineages remembers what this host's latest copies of conversations say. The next fork of a conversation is compared
// with it, and need not read the copy again. The zero value is empty.
type lineages struct {
	mu sync.Mutex
	// latest is sorted by use, the latest last.
	latest []keptLineage
}

// keptLineage is what a file says.
type keptLineage struct {
	sessionID string
	file      fs.FileInfo
	lineage   *claude.Lineage
}

// keep remembers what the copy of a conversation says. Nobody may change the lineage afterwards.
func (l *lineages) keep(sessionID string, file fs.FileInfo, lineage *claude.Lineage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest = slices.DeleteFunc(l.latest, func(one keptLineage) bool { return one.sessionID == sessionID })
	l.latest = append(l.latest, keptLineage{sessionID, file, lineage})
	l.latest = slices.Delete(l.latest, 0, max(0, len(l.latest)-maxLineages))
}

// find returns what the copy of a conversation says; nil if that is unknown, or if the file is another one or has
// changed.
func (l *lineages) find(sessionID string, file fs.FileInfo) *claude.Lineage {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.latest {
		same := os.SameFile(one.file, file) && one.file.Size() == file.Size() &&
			one.file.ModTime().Equal(file.ModTime())
		if one.sessionID == sessionID && same {
			return one.lineage
		}
	}
	return nil
}

// lineage returns what this host's copy of a conversation says.
func (c conversations) lineage(sessionID string) (_ *claude.Lineage, err error) {
	file, err := os.Open(c.path(sessionID))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if known := c.lineages.find(sessionID, info); known != nil {
		return known, nil
	}
	read := claude.NewLineage(nil)
	for lines := bufio.NewReader(file); ; {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			read.Forget()
			c.lineages.keep(sessionID, info, read)
			return read, nil
		}
		if err != nil {
			return nil, err
		}
		read.Add(bytes.TrimSpace(line), sessionID)
	}
}
