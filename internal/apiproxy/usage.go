package apiproxy

import (
	"bytes"
	"encoding/json"
	"io"
)

// Usage is what the API reports that one call used.
type Usage struct {
	Input         int `json:"input_tokens"`
	Output        int `json:"output_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	// Creation splits CacheCreation by how long the cache is kept.
	Creation struct {
		OneHour int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	// ServerTools counts what the API did beside answering.
	ServerTools struct {
		WebSearches int `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// max returns the larger of each number: reports on one call only grow, and leave out what was said before.
func (u Usage) max(other Usage) Usage {
	merged := Usage{
		Input:         max(u.Input, other.Input),
		Output:        max(u.Output, other.Output),
		CacheRead:     max(u.CacheRead, other.CacheRead),
		CacheCreation: max(u.CacheCreation, other.CacheCreation),
	}
	merged.Creation.OneHour = max(u.Creation.OneHour, other.Creation.OneHour)
	merged.ServerTools.WebSearches = max(u.ServerTools.WebSearches, other.ServerTools.WebSearches)
	return merged
}

// message is an answer, or one event of its stream, as far as it tells what was used.
type message struct {
	Type    string `json:"type"`
	Message struct {
		Model string `json:"model"`
		Usage Usage  `json:"usage"`
	} `json:"message"`
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
}

// The events of a stream that tell what was used, and the one that ends it.
const (
	messageStart = "message_start" // the input's tokens
	messageDelta = "message_delta" // the output's tokens
	messageStop  = "message_stop"
)

// meter reads an answer as it passes.
type meter interface {
	io.Writer
	// finish is called at the end of the answer, and reports whether it told all that was used.
	finish() bool
}

// maxEventBytes is how long an event may be that tells what was used. Longer ones are pieces of text.
const maxEventBytes = 1 << 20

// streamMeter reads server-sent events.
type streamMeter struct {
	call  *call
	model string
	usage Usage
	// line is the line under way; skipped says that it is too long to matter.
	line    []byte
	skipped bool
	stopped bool
}

// Write implements io.Writer. It never fails.
func (m *streamMeter) Write(p []byte) (int, error) {
	written := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			m.add(p)
			return written, nil
		}
		m.add(p[:end])
		m.endLine()
		p = p[end+1:]
	}
}

func (m *streamMeter) add(part []byte) {
	if m.skipped || len(m.line)+len(part) > maxEventBytes {
		m.skipped, m.line = true, m.line[:0]
		return
	}
	m.line = append(m.line, part...)
}

// endLine takes in the line that has ended.
func (m *streamMeter) endLine() {
	data, found := bytes.CutPrefix(m.line, []byte("data:"))
	m.line, m.skipped = m.line[:0], false
	if !found || !bytes.Contains(data, []byte(`"message_`)) {
		return
	}
	var event message
	if json.Unmarshal(data, &event) != nil {
		return
	}
	switch event.Type {
	case messageStart:
		m.model = event.Message.Model
		m.count(event.Message.Usage)
	case messageDelta:
		m.usage.Output = 0 // the start had a placeholder
		m.count(event.Usage)
	case messageStop:
		m.stopped = true
	}
}

func (m *streamMeter) count(usage Usage) {
	m.usage = m.usage.max(usage)
	m.call.used(m.model, m.usage)
}

func (m *streamMeter) finish() bool { return m.stopped }

// maxAnswerBytes is how long an answer may be that is not streamed: many times what a model writes.
const maxAnswerBytes = 64 << 20

// wholeMeter reads an answer that is one JSON message.
type wholeMeter struct {
	call *call
	text bytes.Buffer
}

// Write implements io.Writer. It never fails.
func (m *wholeMeter) Write(p []byte) (int, error) {
	if m.text.Len()+len(p) <= maxAnswerBytes {
		_, _ = m.text.Write(p) // never fails
	}
	return len(p), nil
}

func (m *wholeMeter) finish() bool {
	var answer message
	if json.Unmarshal(m.text.Bytes(), &answer) != nil {
		return false
	}
	m.call.used(answer.Model, answer.Usage)
	return true
}

// meteredBody passes an answer on and lets a meter read it.
type meteredBody struct {
	io.ReadCloser

	meter meter
	call  *call
	ended bool
}

// Read implements io.Reader.
func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	_, _ = b.meter.Write(p[:n]) // never fails
	return n, err
}

// Close implements io.Closer.
func (b *meteredBody) Close() error {
	if !b.ended {
		b.ended = true
		if !b.meter.finish() {
			b.call.cutShort()
		}
	}
	return b.ReadCloser.Close()
}
