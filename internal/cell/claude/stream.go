package claude

import "bytes"

// keptCapacity is the size in bytes of the largest buffer that a lineWriter reuses for the next line.
const keptCapacity = 1 << 20

// lineWriter splits its input into lines. It calls the function handle with each line, without the line break. handle
// must not keep a reference to the bytes.
type lineWriter struct {
	handle func(line []byte)
	// limit is the longest line in bytes; 0 means no limit. A longer line is dropped.
	limit   int
	pending []byte
	// overlong is true while the current line is being dropped. overran is true after any line has been dropped.
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

// add appends a part of a line, unless the line is too long.
func (w *lineWriter) add(part []byte) {
	if w.overlong || w.exceeds(len(w.pending)+len(part)) {
		w.overlong, w.overran, w.pending = true, true, nil
		return
	}
	w.pending = append(w.pending, part...)
}

func (w *lineWriter) exceeds(length int) bool { return w.limit > 0 && length > w.limit }

// flush calls handle with the pending part of a line, if there is one.
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

// tailWriter keeps the last limit bytes of its input.
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
