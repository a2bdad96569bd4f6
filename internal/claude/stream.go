package claude

import "bytes"

// keptCapacity is how much memory a lineWriter keeps for the next line after a longer one.
const keptCapacity = 1 << 20

// lineWriter cuts what is written to it into lines and hands each one, without its end, to
// handle. The bytes are handle's only until it returns.
type lineWriter struct {
	handle func(line []byte)
	// limit is how long a line may be in bytes; 0 is any length. A longer one is left out.
	limit   int
	pending []byte
	// overlong says that the line under way is left out, and overran that any was.
	overlong, overran bool
}

// Write implements io.Writer. It never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	written := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			w.add(p)
			return written, nil
		}
		if len(w.pending) == 0 && !w.overlong && !w.exceeds(end) {
			w.handle(p[:end])
		} else {
			w.add(p[:end])
			w.flush()
		}
		p = p[end+1:]
	}
}

// add notes a part of a line, unless the line is too long.
func (w *lineWriter) add(part []byte) {
	if w.overlong || w.exceeds(len(w.pending)+len(part)) {
		w.overlong, w.overran, w.pending = true, true, nil
		return
	}
	w.pending = append(w.pending, part...)
}

func (w *lineWriter) exceeds(length int) bool { return w.limit > 0 && length > w.limit }

// flush hands on what has come since the last end of a line, if anything has.
func (w *lineWriter) flush() {
	w.overlong = false
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
