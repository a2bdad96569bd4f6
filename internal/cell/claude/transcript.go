package claude

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf16"
)

// TranscriptPath returns the path of the transcript of a conversation in the working directory dir. The file need not
// exist.
func (c *CLI) TranscriptPath(dir, sessionID string) (string, error) {
	home, err := c.transcriptHome()
	if err != nil {
		return "", err
	}
	return transcriptPath(home, dir, sessionID)
}

// TranscriptName returns the path of the transcript of a conversation below the CLI's own directory. The agent works in
// the directory dir.
func TranscriptName(dir, sessionID string) (string, error) { return transcriptPath("", dir, sessionID) }

// HoldsMessage reports whether the CLI can resume the conversation in the transcript at path. It can do so if the
// transcript contains a message. The file must not be one that an agent can replace.
func HoldsMessage(path string) (bool, error) {
	found, err := holdsMessage(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return found, err
}

// ConfigDir returns the CLI's own directory for invocations that have none of their own.
func (c *CLI) ConfigDir() (string, error) { return c.transcriptHome() }

// HasTranscript reports whether the CLI can resume the conversation sessionID in the working directory dir. It can do
// so if the transcript exists and contains a message.
func (c *CLI) HasTranscript(dir, sessionID string) (bool, error) {
	path, err := c.TranscriptPath(dir, sessionID)
	if err != nil {
		return false, err
	}
	found, err := c.holdsMessage(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look into the transcript of %s: %w", sessionID, err)
	}
	return found, nil
}

// clearEmptyTranscript removes a transcript without a message that has the id of a conversation that is about to begin.
// Such a transcript exists if an earlier run of the CLI died early. The CLI could not resume that conversation, and
// would refuse to start a new conversation with the same id.
func (c *CLI) clearEmptyTranscript(i Invocation) error {
	if i.Resume == i.SessionID {
		return nil
	}
	if _, given := i.Env[configVariable]; given { // the caller decides what is in it
		return nil
	}
	path, err := c.TranscriptPath(i.Dir, i.SessionID)
	if err != nil {
		return notStarted("cannot prepare the conversation: %w", err)
	}
	if found, err := c.holdsMessage(path); found || err != nil {
		return nil //nolint:nilerr // mostly there is no file; in the other cases the CLI reports the error
	}
	if err := c.asUser(func() error { return os.Remove(path) }); err != nil {
		return notStarted("cannot remove an empty transcript: %w", err)
	}
	return nil
}

// holdsMessage reports whether the transcript at path contains a message. It reads the file with the file access rights
// of the CLI's user.
func (c *CLI) holdsMessage(path string) (found bool, err error) {
	err = c.asUser(func() error {
		found, err = holdsMessage(path)
		return err
	})
	return found, err
}

// errNotTranscript says that there is a directory, a pipe or the like at the path of a transcript.
var errNotTranscript = errors.New("not a regular file")

// holdsMessage reports whether the transcript at path contains a message. A transcript without messages can have other
// lines, because the CLI writes lines, such as its mode, before the first message.
func holdsMessage(path string) (found bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() { // opening a named pipe could block forever
		return false, fmt.Errorf("%s: %w", path, errNotTranscript)
	}
	file, err := os.Open(path) //nolint:gosec // made from a UUID and the CLI's own directory
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if isMessage(line) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// isMessage reports whether a line of a transcript is a message of the user or the agent. An incomplete line does not
// count, because the CLI skips it, too.
func isMessage(line []byte) bool {
	var head struct {
		Type eventType `json:"type"`
	}
	return json.Unmarshal(line, &head) == nil && (head.Type == eventUser || head.Type == eventAssistant)
}

// transcriptPath returns the path of a conversation's transcript. The argument configDir is the CLI's own directory,
// and dir is the working directory. The CLI uses the real path of the working directory, so transcriptPath resolves
// symbolic links in dir if dir exists.
func transcriptPath(configDir, dir, sessionID string) (string, error) {
	if !isUUID(sessionID) {
		return "", fmt.Errorf("transcript path: the session id %q is not a UUID", sessionID)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("transcript path: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return filepath.Join(configDir, "projects", projectName(dir), sessionID+".jsonl"), nil
}

// maxProjectName is the length of the longest directory name that the CLI does not shorten. The CLI cuts a longer name
// and adds a hash.
const maxProjectName = 200

// projectName returns the name of the directory in which the CLI keeps the transcripts of a working directory. The name
// is the path with a hyphen for every UTF-16 unit that is not an ASCII letter or digit. A long name is cut, and a hash
// of the whole path is appended.
func projectName(dir string) string {
	units := utf16.Encode([]rune(dir))
	name := make([]byte, len(units))
	var hash int32
	for i, unit := range units {
		hash = hash*31 + int32(unit)
		switch {
		case unit >= 'a' && unit <= 'z', unit >= 'A' && unit <= 'Z', unit >= '0' && unit <= '9':
			name[i] = byte(unit)
		default:
			name[i] = '-'
		}
	}
	if len(name) <= maxProjectName {
		return string(name)
	}
	magnitude := max(int64(hash), -int64(hash))
	return string(name[:maxProjectName]) + "-" + strconv.FormatInt(magnitude, 36)
}

// transcriptHome returns the CLI's own directory. It finds the directory by the same rules as the CLI.
func (c *CLI) transcriptHome() (string, error) {
	if dir := c.configDir(); dir != "" {
		return dir, nil
	}
	home := lookupVariable(c.options.Environ, "HOME")
	if home == "" {
		return "", errors.New("cannot tell where transcripts are: neither a directory for the CLI nor HOME is set")
	}
	return filepath.Join(home, ".claude"), nil
}
