package stream

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
)

// Event is a change as viewers get it: the JSON in the data of a server-sent event, whose event field is Type.
type Event struct {
	// ID is empty for progress, and for nothing else.
	ID      string                `json:"id,omitempty"`
	Type    operations.ChangeKind `json:"type"`
	ChainID string                `json:"chain_id,omitempty"`
	At      time.Time             `json:"at"`
	Data    any                   `json:"data,omitempty"`
}

// message is an encoded event. All viewers share it.
type message struct {
	kind  operations.ChangeKind
	chain string
	event Event
	// text is the event in the form of the stream. The ring sets it for an event with an ID.
	text []byte
}

func newMessage(change operations.Change) (*message, error) {
	m := &message{kind: change.Kind, chain: change.ChainID, event: Event{
		Type: change.Kind, ChainID: change.ChainID, At: change.At.UTC(), Data: change.Data,
	}}
	err := m.encode()
	return m, err
}

// encode sets the text. JSON has no line breaks, so that no text of an agent can end the event.
func (m *message) encode() error {
	data, err := json.Marshal(m.event)
	if err != nil {
		return fmt.Errorf("encode it: %w", err)
	}
	var b bytes.Buffer
	if m.event.ID != "" {
		fmt.Fprintf(&b, "id: %s\n", m.event.ID)
	}
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", m.event.Type, data)
	m.text = b.Bytes()
	return nil
}

// ring holds the latest changes. Its IDs have a random beginning, so that an ID of another hub is not mistaken for one
// of its own.
type ring struct {
	name   string
	kept   []*message
	latest int // number of the latest change
}

func newRing() ring { return ring{name: rand.Text()[:10]} }

func (r *ring) id(number int) string { return r.name + "-" + strconv.Itoa(number) }

// position returns the ID of the latest change.
func (r *ring) position() string { return r.id(r.latest) }

// add gives a message its ID, and keeps it in place of the oldest one.
func (r *ring) add(m *message) {
	r.latest++
	m.event.ID = r.id(r.latest)
	_ = m.encode() // it was encoded before
	if len(r.kept) == ringSize {
		r.kept = r.kept[1:]
	}
	r.kept = append(r.kept, m)
}

// after returns the changes after the one with this ID; false if they are not known any more. It returns nothing for an
// empty ID.
func (r *ring) after(id string) (missed []*message, known bool) {
	if id == "" {
		return nil, true
	}
	name, digits, _ := strings.Cut(id, "-")
	number, err := strconv.Atoi(digits)
	oldest := r.latest - len(r.kept)
	if err != nil || name != r.name || number < oldest || number > r.latest {
		return nil, false
	}
	return r.kept[number-oldest:], true
}

// reset returns the message for a viewer whose last change is not known any more.
func (r *ring) reset() *message {
	m := &message{kind: operations.ChangeReset, event: Event{
		ID: r.position(), Type: operations.ChangeReset,
		At: time.Now().UTC(),
	}}
	_ = m.encode() // it contains nothing that cannot be encoded
	return m
}
