package claudesim

import (
	"encoding/json"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
)

// event is one line of output.
type event map[string]any

// emitter prints events. The fault can change the events.
type emitter struct {
	w       io.Writer
	id      string
	fault   Fault
	printed int
}

func newEmitter(w io.Writer, sessionID string, fault Fault) *emitter {
	return &emitter{w: w, id: sessionID, fault: fault}
}

// emit adds the fields that all lines have, and prints the line.
func (e *emitter) emit(kind string, line event) {
	time.Sleep(e.fault.LineDelay.Std())
	line["type"], line["uuid"] = kind, uuid.NewString()
	if !e.fault.OmitSessionID {
		line["session_id"] = e.id
	}
	if data, err := json.Marshal(line); err == nil {
		_, _ = e.w.Write(append(data, '\n')) // the program continues if its reader has exited
	}
	if n := len(e.fault.Garbage); n > 0 {
		_, _ = io.WriteString(e.w, e.fault.Garbage[e.printed%n]+"\n")
	}
	e.printed++
}

// assistant prints one block of an assistant's message.
func (e *emitter) assistant(message map[string]any, extra event) {
	line := event{"message": message, "parent_tool_use_id": nil}
	maps.Copy(line, extra)
	e.emit("assistant", line)
}

// pad appends to text the number of bytes that the fault requires.
func (e *emitter) pad(text string) string { return text + strings.Repeat("x", e.fault.PadLines) }
