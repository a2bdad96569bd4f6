package claude

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Lineage is what one transcript says about its messages: enough to tell whether a fork still has the conversation that
// it began with.
//
// A fork is not a copy of its parent's file. The CLI writes the messages again: with the same UUIDs, links and content,
// the fork's own session ID, and more fields beside them. It leaves out lines about itself, calls without a result and
// messages that the conversation has left behind.
type Lineage struct {
	// order lists the lines as they were read. places has the place of each UUID in it; if a UUID occurs twice, the
	// later one.
	order  []*lineageLine
	places map[string]int
	// last is the UUID of the last message.
	last string
	// results holds the calls that have a result.
	results map[string]bool
	// forked holds UUIDs that occur with two contents.
	forked map[string]bool
	// outlines finds lines by their outlines.
	outlines map[outline]*lineageLine
	// known is a lineage that probably has most of the lines; nil if there is none.
	known *Lineage
	// outliner makes the outlines.
	outliner outliner
}

// lineageLine is a line with a UUID. Nobody changes it once it is in a Lineage, so that forks can share it.
type lineageLine struct {
	uuid   string
	parent string
	digest [sha256.Size]byte
	// message reports whether the line is a message of the main thread.
	message bool
	// calls holds the calls of the message, and said whether it has anything else that a model reads.
	calls []string
	said  bool
	// answered holds the calls of which the message has the results.
	answered []string
	// summary reports whether a summary replaces the conversation before this line.
	summary bool
}

// NewLineage returns an empty Lineage. Decoding a line is costly. So Add takes a line from the lineage known if that
// has the same line with the same outline. The caller must not change known any more; it is nil if there is none.
func NewLineage(known *Lineage) *Lineage {
	size := 0
	if known != nil {
		size = len(known.order) + 16 // a turn adds a few lines
	}
	return &Lineage{
		places: make(map[string]int, size), order: make([]*lineageLine, 0, size),
		outlines: make(map[outline]*lineageLine, size), results: map[string]bool{}, forked: map[string]bool{},
		known: known,
	}
}

// Forget drops what Add no longer needs when all lines are there.
func (l *Lineage) Forget() { l.known, l.outliner = nil, outliner{} }

// Add adds a line of the transcript. It returns false if the line does not belong there: it must be a JSON object, and
// the conversation that it names, if any, must be sessionID. Add does not keep line.
func (l *Lineage) Add(line []byte, sessionID string) bool {
	key := l.outliner.outline(line, sessionID)
	if found := l.known.find(key); found != nil {
		l.outlines[key] = found
		l.add(found)
		return true
	}
	var read inheritable
	if json.Unmarshal(line, &read) != nil || !read.belongsTo(sessionID) {
		return false
	}
	if read.UUID == "" {
		return true
	}
	found := read.decode()
	if read.fixesOutline(line, sessionID) {
		l.outlines[key] = found
	}
	l.add(found)
	return true
}

// find returns the line with an outline; nil if there is none.
func (l *Lineage) find(key outline) *lineageLine {
	if l == nil {
		return nil
	}
	return l.outlines[key]
}

func (l *Lineage) add(found *lineageLine) {
	for _, call := range found.answered {
		l.results[call] = true
	}
	if found.message {
		l.last = found.uuid
	}
	if at, again := l.places[found.uuid]; again && !l.order[at].inherits(found) {
		l.forked[found.uuid] = true
	}
	l.places[found.uuid] = len(l.order)
	l.order = append(l.order, found)
}

// inheritable holds what a fork takes over of a line, and what the line names.
type inheritable struct {
	Type      eventType       `json:"type"`
	Subtype   systemSubtype   `json:"subtype"`
	UUID      string          `json:"uuid"`
	Parent    string          `json:"parentUuid"`
	SessionID json.RawMessage `json:"sessionId"`
	Sidechain bool            `json:"isSidechain"`
	Message   json.RawMessage `json:"message"`
	// Attachment and Rendered are what the CLI itself has told the model.
	Attachment json.RawMessage `json:"attachment"`
	Rendered   json.RawMessage `json:"rendered"`
}

// belongsTo reports whether the line names the session, or none.
func (i inheritable) belongsTo(sessionID string) bool {
	if i.SessionID == nil {
		return true
	}
	var named *string
	return json.Unmarshal(i.SessionID, &named) == nil && (named == nil || *named == sessionID)
}

func (i inheritable) decode() *lineageLine {
	line := &lineageLine{
		uuid: i.UUID, parent: i.Parent, summary: i.Subtype == systemCompacted,
		message: !i.Sidechain && (i.Type == eventUser || i.Type == eventAssistant),
		digest:  digestOf(i.Type, i.Parent, i.Message, i.Attachment, i.Rendered),
	}
	if line.message {
		readMessage(i.Message, line)
	}
	return line
}

// readMessage reads the calls and results in a message.
func readMessage(message json.RawMessage, line *lineageLine) {
	var read struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(message, &read) != nil {
		return
	}
	var blocks []contentBlock
	if json.Unmarshal(read.Content, &blocks) != nil {
		line.said = true // a text
		return
	}
	for _, block := range blocks {
		switch block.Type {
		case blockToolUse:
			line.calls = append(line.calls, block.ID)
		case blockToolResult:
			line.answered = append(line.answered, block.ToolUseID)
			line.said = true
		case blockText:
			line.said = line.said || len(bytes.TrimSpace([]byte(block.Text))) > 0
		default: // such as thinking, which the CLI drops when nothing follows
		}
	}
}

// digestOf returns a digest of what a fork takes over. It does not depend on the spelling of the JSON.
func digestOf(kind eventType, parent string, contents ...json.RawMessage) [sha256.Size]byte {
	digest := sha256.New()
	_, _ = fmt.Fprintf(digest, "%s\n%s\n", kind, parent)
	for _, content := range contents {
		var value any
		if json.Unmarshal(content, &value) == nil {
			if text, err := json.Marshal(value); err == nil {
				content = text
			}
		}
		_, _ = fmt.Fprintf(digest, "%s\n", content)
	}
	return [sha256.Size]byte(digest.Sum(nil))
}

// inherits reports whether a fork with the line has what another line says.
func (line *lineageLine) inherits(other *lineageLine) bool {
	return line == other || line.digest == other.digest
}

// Departure says how the conversation of l departs from the one of its parent, from which it was forked; "" if it
// continues it.
func (l *Lineage) Departure(parent *Lineage) string {
	places := make([]int, len(parent.order)) // those of the parent's lines in l; -1 for none
	for i, inherited := range parent.order {
		at, found := l.places[inherited.uuid]
		switch {
		case !found:
			at = -1
		case !l.order[at].inherits(parent.order[parent.latest(i)]) || l.forked[inherited.uuid]:
			return "message " + inherited.uuid + " was changed"
		}
		places[i] = at
	}
	own := l.thread()
	if own.summed {
		return ""
	}
	thread := parent.thread()
	for i, inherited := range parent.order {
		latest := parent.latest(i)
		if thread.lines[latest] && parent.lasts(parent.order[latest]) && !own.has(places[i]) {
			return "message " + inherited.uuid + " was left out" + own.gap()
		}
	}
	return ""
}

// latest returns the place of the line that was read last with the UUID of the line at the given place.
func (l *Lineage) latest(at int) int {
	if len(l.places) == len(l.order) { // each UUID occurs once
		return at
	}
	return l.places[l.order[at].uuid]
}

// Within reports whether the parent has all lines of l. Then the CLI had not finished the fork, or nothing was said in
// it.
func (l *Lineage) Within(parent *Lineage) bool {
	for id, at := range l.places {
		in, found := parent.places[id]
		if !found || !parent.order[in].inherits(l.order[at]) || l.forked[id] {
			return false
		}
	}
	return true
}

// thread is what leads to the last message.
type thread struct {
	// lines tells for each place in Lineage.order whether its line belongs to the thread.
	lines []bool
	// summed reports whether the thread begins with a summary.
	summed bool
	// missing is a line that the thread's first line names as the one before it, and that is not there.
	missing string
}

// has reports whether the line at a place belongs to the thread; false for a negative place.
func (t thread) has(at int) bool { return at >= 0 && t.lines[at] }

// gap says where a thread breaks off, if it does.
func (t thread) gap() string {
	if t.missing == "" {
		return ""
	}
	return ": the conversation goes back to line " + t.missing + ", which is not there"
}

// thread returns the lines that lead to the last message. It stops at a summary.
func (l *Lineage) thread() thread {
	found := thread{lines: make([]bool, len(l.order))}
	for id := l.last; id != ""; {
		at, known := l.places[id]
		if !known {
			found.missing = id
			break
		}
		if found.lines[at] {
			break
		}
		found.lines[at] = true
		line := l.order[at]
		if line.summary {
			found.summed = true
			break
		}
		id = line.parent
	}
	return found
}

// lasts reports whether a fork must have a message. The CLI leaves out calls without a result, and messages without
// content.
func (l *Lineage) lasts(line *lineageLine) bool {
	if !line.message {
		return false
	}
	for _, call := range line.calls {
		if l.results[call] {
			return true
		}
	}
	return line.said
}
