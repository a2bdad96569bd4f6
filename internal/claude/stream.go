package claude

import "bytes"

// keptCapacity is how much memory a lineWriter keeps for the next line after a longer one.
const keptCapacity = 1 << 20

// lineWriter cuts what is written to it into lines and hands each one, without its end, to
// handle. Lines may be of any length. The bytes are handle's only until it returns.
type lineWriter struct {
	handle  func(line []byte)
	pending []byte
}

// Write implements io.Writer. It never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	written := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			w.pending = append(w.pending, p...)
			return written, nil
		}
		if len(w.pending) == 0 {
			w.handle(p[:end])
		} else {
			w.pending = append(w.pending, p[:end]...)
			w.flush()
		}
		p = p[end+1:]
	}
}

// flush hands on what has come since the last end of a line, if anything has.
func (w *lineWriter) flush() {
	if len(w.pending) == 0 {
		return
	}
	w.handle(w.pending)
	w.pending = w.pending[:0]
	if cap(w.pending) > keptCapacity {
		w.pending = nil
	}
}

// tailWriter keeps the last limit bytes of what is written to it.
type tailWriter struct {
	limit int
	kept  []byte
}

// Write implements io.Writer. It never fails.
func (w *tailWriter) Write(p []byte) (int, error) {
	w.kept = append(w.kept, p...)
	if excess := len(w.kept) - w.limit; excess > 0 {
		w.kept = append(w.kept[:0], w.kept[excess:]...)
	}
	return len(p), nil
}
