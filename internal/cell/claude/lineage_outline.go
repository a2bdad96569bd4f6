package claude

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// outline is a digest of a line without the two values that a fork replaces: the name of the session and in some
// versions the ID of a prompt. It is much cheaper than decoding the line. If a decoded line has a fixed outline (see
// fixesOutline), all lines with this outline are decoded to the same, each in its own session.
type outline [sha256.Size]byte

const (
	// promptKey precedes the ID of a prompt. promptLength is the length of the ID.
	promptKey    = `"promptId":"`
	promptLength = 36
)

// outliner makes outlines. It keeps the memory for the text of which an outline is the digest, and the ID of the latest
// session.
type outliner struct{ text, sessionID []byte }

// outline returns the outline of a line in a session. What is left out and where is part of the digest.
func (o *outliner) outline(line []byte, sessionID string) outline {
	text, rest := o.text[:0], 0
	leaveOut := func(kind byte, at, length int) {
		if at < rest { // there is none
			return
		}
		text = binary.LittleEndian.AppendUint64(append(text, kind), uint64(at-rest)) //nolint:gosec // not negative
		text = append(text, line[rest:at]...)
		rest = at + length
	}
	if string(o.sessionID) != sessionID {
		o.sessionID = []byte(sessionID)
	}
	session, prompt := bytes.Index(line, o.sessionID), promptIn(line)
	if session < prompt {
		leaveOut('s', session, len(sessionID))
	}
	leaveOut('p', prompt, promptLength)
	if session > prompt {
		leaveOut('s', session, len(sessionID))
	}
	o.text = append(append(text, 'r'), line[rest:]...)
	return sha256.Sum256(o.text)
}

// promptIn returns the place of the first ID of a prompt in a line; -1 if there is none. Any other text of hexadecimal
// digits and hyphens, in its place, makes no other difference to the line.
func promptIn(line []byte) int {
	key := bytes.Index(line, []byte(promptKey))
	if key < 0 {
		return -1
	}
	at := key + len(promptKey)
	id, after, _ := bytes.Cut(line[at:], []byte{'"'})
	if after == nil || len(id) != promptLength || len(bytes.Trim(id, "0123456789abcdef-")) > 0 {
		return -1
	}
	return at
}

// fixesOutline reports whether the line was decoded from nothing that its outline leaves out, except the name of the
// session.
func (i inheritable) fixesOutline(line []byte, sessionID string) bool {
	names := 0
	if i.SessionID != nil {
		if string(i.SessionID) != `"`+sessionID+`"` { // null, or spelled with escapes
			return false
		}
		names = 1
	}
	if bytes.Count(line, []byte(sessionID)) != names {
		return false
	}
	for _, content := range [][]byte{i.Message, i.Attachment, i.Rendered} {
		if bytes.Contains(content, []byte(promptKey)) {
			return false
		}
	}
	return true
}
