package proxy

import (
	"bytes"
	"encoding/json"
	"io"
)

// Usage is the usage of one call as the API reports it.
type Usage struct {
	Input         int `json:"input_tokens"`
	Output        int `json:"output_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	// Creation splits CacheCreation by the time for which the cache keeps the tokens.
	Creation struct {
		OneHour int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	// ServerTools counts the tools that the API ran.
	ServerTools struct {
		WebSearches int `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// max returns a Usage with the larger value of each number in u and other. During a call the numbers only grow, but a
// later report sometimes omits some of them.
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

// message is an answer, or one event in the stream of an answer. It has only the fields about the model and the usage.
type message struct {
	Type    string `json:"type"`
	Message struct {
		Model string `json:"model"`
		Usage Usage  `json:"usage"`
	} `json:"message"`
	Model string `json:"model"`
	Usage Usage  `json:"usage"`
	// Delta is a piece of the text: of the answer, of the model's thoughts, or of a tool's input.
	Delta struct {
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		Input    string `json:"partial_json"`
	} `json:"delta"`
}

// streamed returns the length of the piece of text.
func (m *message) streamed() int {
	return len(m.Delta.Text) + len(m.Delta.Thinking) + len(m.Delta.Input)
}

// bytesOfToken is the number of bytes for which an estimate counts a token. English text has about four. A lower number
// makes the estimate rather too high.
const bytesOfToken = 3

// The events of a stream that report usage, and the event at the end of the stream.
const (
	messageStart = "message_start" // has the input tokens
	messageDelta = "message_delta" // has the output tokens
	messageStop  = "message_stop"
	// contentDelta has a piece of the text, before the usage is reported.
	contentDelta = "content_block_delta"
)

// meter reads the usage from an answer that is written to it.
type meter interface {
	io.Writer
	// finish ends the metering of an answer. It reports whether the answer stated all of its usage.
	finish() bool
}

// maxEventBytes limits the length of the events from which the usage is read. Longer events carry text and no usage.
const maxEventBytes = 1 << 20

// streamMeter meters server-sent events.
type streamMeter struct {
	call  *call
	model string
	usage Usage
	// line holds the current line, as far as it was read. If the line is longer than maxEventBytes, line is empty and
	// skipped is true.
	line    []byte
	skipped bool
	stopped bool
	// streamed is the length of the text so far.
	streamed int
}

// Write implements io.Writer. It never returns an error.
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

// endLine processes the buffered line.
func (m *streamMeter) endLine() {
	data, found := bytes.CutPrefix(m.line, []byte("data:"))
	m.line, m.skipped = m.line[:0], false
	if !found || !bytes.Contains(data, []byte(`"message_`)) && !bytes.Contains(data, []byte(contentDelta)) {
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
	case contentDelta:
		m.streamed += event.streamed()
		m.count(Usage{Output: m.streamed / bytesOfToken})
	case messageDelta:
		m.usage.Output = 0 // the value so far is a placeholder or an estimate
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

// maxAnswerBytes limits how much of an answer without a stream is kept. The usage is read from the kept text. Models
// write far shorter answers.
const maxAnswerBytes = 64 << 20

// wholeMeter meters an answer that is one JSON message.
type wholeMeter struct {
	call *call
	text bytes.Buffer
}

// Write implements io.Writer. It never returns an error.
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

// meteredBody is the body of an answer. It passes everything that is read from it to a meter.
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

// Close implements io.Closer. It first reads the rest of the answer, because the API charges for all of it. Reading
// ends early if the session ends.
func (b *meteredBody) Close() error {
	if !b.ended {
		b.ended = true
		_, _ = io.Copy(io.Discard, io.TeeReader(b.ReadCloser, b.meter)) // an answer that ends early is counted as such
		if !b.meter.finish() {
			b.call.cutShort()
		}
	}
	return b.ReadCloser.Close()
}
