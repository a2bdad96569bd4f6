package agent

import (
	"bytes"
	"cmp"
)

// tail keeps the end of what is written to it.
type tail struct {
	// most is the number of bytes that it keeps; 0 for maxCommandOutput.
	most int
	kept bytes.Buffer
	cut  bool
	// full is called when more than maxPrinted bytes were written; it may be nil.
	full    func()
	written int
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	_, _ = t.kept.Write(p)
	if t.written += len(p); t.written > maxPrinted && t.full != nil {
		t.full()
	}
	if limit := cmp.Or(t.most, maxCommandOutput); t.kept.Len() > 2*limit {
		t.shorten(limit)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.shorten(cmp.Or(t.most, maxCommandOutput))
	if t.cut {
		return "…\n" + t.kept.String()
	}
	return t.kept.String()
}

func (t *tail) shorten(limit int) {
	if over := t.kept.Len() - limit; over > 0 {
		t.kept.Next(over)
		t.cut = true
	}
}
