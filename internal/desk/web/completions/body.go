package completions

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxBody limits a request without its pictures and files, in bytes.
	maxBody = 4 << 20
	// maxString limits a string in a request, in bytes. It is more than the longest message can have.
	maxString = 256 << 10
	// maxOther limits the strings of fields that are not read.
	maxOther = 1 << 10
	// maxField is more than the length of the names of all fields that are read.
	maxField = 32
	// maxEncoded limits data in Base64 that stands in a string.
	maxEncoded = 1 << 10
)

// readFields are the fields with strings that are read. Pictures and files are in others.
var readFields = []string{"content", "text", "role", "type"}

// base64Mark precedes data in Base64.
const base64Mark = ";base64,"

// lightReader reads JSON, and leaves out most of each string that is too long to be a text. A client sends each picture
// of a chat again with each message, so it must not count, and must not fill the memory. The reader keeps what it reads
// valid: a string is cut only between characters and escapes. It is no parser: what is no JSON stays none.
type lightReader struct {
	in *bufio.Reader
	// inString reports whether the last byte is within a string.
	inString bool
	// last is the beginning of the last string, and field that of the last key.
	last, field []byte
	// length is the length of the string so far. encoded is the length of data in Base64 so far; -1 outside of such
	// data.
	length, encoded int
	// tail is the end of the string so far, in which base64Mark is looked for.
	tail []byte
	// escape is the number of bytes that are missing of an escape.
	escape int
	// cut reports whether the rest of the string is left out, and left whether its last byte is.
	cut, left bool
}

func newLightReader(in io.Reader) *lightReader {
	return &lightReader{in: bufio.NewReaderSize(in, 64<<10)}
}

// Read implements io.Reader.
func (r *lightReader) Read(into []byte) (n int, err error) {
	for n < len(into) {
		b, err := r.in.ReadByte()
		if err != nil {
			return n, err
		}
		if r.keep(b) {
			into[n] = b
			n++
		}
	}
	return n, nil
}

// keep reports whether a byte belongs to what is kept.
func (r *lightReader) keep(b byte) bool {
	if !r.inString {
		r.between(b)
		return true
	}
	within := r.escape > 0 || b&0xC0 == 0x80 // this byte continues a character
	switch {
	case r.escape > 0:
		r.escape--
		if r.escape == 0 && b == 'u' && r.tail[len(r.tail)-1] == '\\' {
			r.escape = 4
		}
	case b == '\\':
		r.escape = 1
	case b == '"':
		r.inString = false
		return true
	}
	return r.within(b, within)
}

// between follows the structure between strings.
func (r *lightReader) between(b byte) {
	switch b {
	case '"':
		r.inString, r.cut, r.left = true, false, false
		r.length, r.encoded, r.escape = 0, -1, 0
		r.last, r.tail = r.last[:0], r.tail[:0]
	case ':':
		r.field = append(r.field[:0], r.last...)
	case '{', '}', ',':
		r.field, r.last = r.field[:0], r.last[:0]
	}
}

// within reports whether a byte of a string is kept. A byte that continues a character is kept or left out like the
// byte before it.
func (r *lightReader) within(b byte, continues bool) bool {
	if !continues {
		r.cut = r.cut || r.length >= r.limit()
		if r.encoded >= 0 && r.isData(b) {
			r.encoded++
		} else {
			r.encoded = -1
		}
		r.left = r.cut || r.encoded > maxEncoded
	}
	r.tail = append(r.tail, b)
	if b == ',' && bytes.HasSuffix(r.tail, []byte(base64Mark)) {
		r.encoded = 0
	}
	if len(r.tail) > 8*len(base64Mark) {
		r.tail = r.tail[:copy(r.tail, r.tail[len(r.tail)-len(base64Mark):])]
	}
	if r.left {
		return false
	}
	r.length++
	if len(r.last) < maxField {
		r.last = append(r.last, b)
	}
	return true
}

// isData reports whether a byte can be in data in Base64. In JSON, its slash can be escaped.
func (r *lightReader) isData(b byte) bool {
	if b == '\\' {
		next, err := r.in.Peek(1)
		return err == nil && next[0] == '/'
	}
	return 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || strings.IndexByte("+/=-_", b) >= 0
}

// limit returns the limit of the string's length. A key that is written in an unusual way can be that of a field that
// is read.
func (r *lightReader) limit() int {
	usual := !bytes.ContainsFunc(r.field, func(c rune) bool { return c == '\\' || c > unicode.MaxASCII })
	if len(r.field) == 0 || !usual || slices.Contains(readFields, strings.ToLower(string(r.field))) {
		return maxString
	}
	return maxOther
}
