package cell

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/files"
)

const (
	// maxTranscript limits the size of a conversation. A long one has about ten megabytes.
	maxTranscript = 256 << 20
	// maxTranscriptLine limits a line of it, because a line is held in memory.
	maxTranscriptLine = 32 << 20
)

// inherited describes the conversation with which a session began.
type inherited struct {
	// Name is the path of the session's transcript below the CLI's directory.
	Name string `json:"name"`
	// Parent is the conversation of which the session's is a fork; empty if it is none.
	Parent string `json:"parent,omitempty"`
	start
}

// start is the beginning of a transcript. The zero value is the beginning of every transcript.
type start struct {
	Bytes int64 `json:"bytes,omitempty"`
	// SHA256 is hexadecimal.
	SHA256 string `json:"sha256,omitempty"`
}

// intake takes the conversation of a session from a file that its agent can write.
type intake struct {
	conversations

	sessionID string
	// root is the CLI's directory.
	root  *os.Root
	begin inherited
	// last is what the copy says that was taken last; nil if none was.
	last *claude.Lineage
	// size and changed are those of the file when it was last taken in.
	size    int64
	changed time.Time
	// altered is the error after which nothing is taken in any more.
	altered error
}

// errUnfinished is the error for a fork of which the CLI has written only a part. The CLI was killed in between.
var errUnfinished = errors.New("the conversation has only a part of what it inherited")

// take replaces this host's copy of the conversation by the complete lines of the agent's file. A missing file is not
// an error. If the agent has changed what it had inherited, the error is an *AlteredError, and the copy stays as it is.
// If the first file of a fork has only a part of what was inherited, the error is errUnfinished.
func (in *intake) take(ctx context.Context) (err error) {
	if in.altered != nil {
		return in.altered
	}
	file, err := files.Open(in.root, in.begin.Name, in.owner())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the transcript: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == in.size && info.ModTime().Equal(in.changed) {
		return nil
	}
	if info.Size() > maxTranscript {
		return fmt.Errorf("the transcript has %d bytes, more than the %d that are taken", info.Size(), maxTranscript)
	}
	if err := in.takeFile(ctx, io.LimitReader(file, maxTranscript)); err != nil {
		if found, is := errors.AsType[*AlteredError](err); is {
			in.altered = err
			err = errors.Join(err, in.seal(ctx, found))
		}
		return err
	}
	in.size, in.changed = info.Size(), info.ModTime()
	return nil
}

// owner returns the number of the agents' user.
func (in *intake) owner() int {
	if in.user != nil {
		return in.user.UID
	}
	return os.Getuid()
}

// takeFile checks and copies the agent's file.
func (in *intake) takeFile(ctx context.Context, source io.Reader) (err error) {
	draft, err := os.CreateTemp(in.dir, ".taking-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(draft.Name()))
		}
	}()
	lineage, err := in.copyLines(files.Reader(ctx, source), draft)
	info, statErr := draft.Stat()
	if err := errors.Join(err, statErr, draft.Close()); err != nil {
		return err
	}
	if err := os.Rename(draft.Name(), in.path(in.sessionID)); err != nil {
		return err
	}
	in.last = lineage
	in.lineages.keep(in.sessionID, info, lineage)
	return nil
}

// copyLines copies the lines that belong to the conversation, and returns what they say. The CLI skips lines that are
// not JSON, and so does copyLines. The last line may be incomplete, because the CLI is still writing it.
func (in *intake) copyLines(source io.Reader, target io.Writer) (*claude.Lineage, error) {
	check, err := in.newCheck()
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewWriterSize(target, 1<<16)
	for lines := bufio.NewReaderSize(source, 1<<16); ; {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if check.passes(line) {
			if _, err := buffered.Write(line); err != nil {
				return nil, err
			}
		}
	}
	check.lineage.Forget()
	how := check.departure()
	if how == "" {
		return check.lineage, buffered.Flush()
	}
	_, missing := os.Stat(in.path(in.sessionID))
	if errors.Is(missing, fs.ErrNotExist) && check.parent != nil && check.lineage.Within(check.parent) {
		return nil, errUnfinished
	}
	return nil, &AlteredError{in.sessionID, how}
}

// readLine returns the next complete line, until the next call. It returns io.EOF for an incomplete one.
func readLine(lines *bufio.Reader) ([]byte, error) {
	line, err := lines.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	for line = bytes.Clone(line); ; {
		part, err := lines.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxTranscriptLine {
			return nil, fmt.Errorf("the transcript has a line of more than %d bytes", maxTranscriptLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// check compares a transcript with what its session inherited.
type check struct {
	*intake

	lineage *claude.Lineage
	// parent is what the parent's copy says; nil if the conversation is no fork.
	parent *claude.Lineage
	// read counts the bytes so far, and digest is that of the inherited ones.
	read   int64
	digest hash.Hash
}

func (in *intake) newCheck() (*check, error) {
	c := &check{intake: in, digest: sha256.New()}
	if in.begin.Parent != "" {
		var err error
		if c.parent, err = in.lineage(in.begin.Parent); err != nil {
			return nil, fmt.Errorf("read the conversation of the parent: %w", err)
		}
	}
	c.lineage = claude.NewLineage(cmp.Or(in.last, c.parent))
	return c, nil
}

// passes reports whether a line belongs to the conversation. All lines that the session inherited do: they were checked
// before.
func (c *check) passes(line []byte) bool {
	start := c.read
	c.read += int64(len(line))
	belongs := c.lineage.Add(bytes.TrimSpace(line), c.sessionID)
	if start < c.begin.Bytes {
		_, _ = c.digest.Write(line)
		return true
	}
	return belongs
}

// departure says how the transcript departs from what the session inherited; "" if it continues it.
func (c *check) departure() string {
	if c.begin.Bytes > 0 && (c.read < c.begin.Bytes || hex.EncodeToString(c.digest.Sum(nil)) != c.begin.SHA256) {
		return fmt.Sprintf("its first %d bytes are others", c.begin.Bytes)
	}
	if c.parent == nil {
		return ""
	}
	return c.lineage.Departure(c.parent)
}
