package claudesim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Launch is one start of the stand-in that has read its prompt.
type Launch struct {
	PID  int      `json:"pid"`
	Args []string `json:"args"`
	Dir  string   `json:"dir"`
	// Stdin is the standard input: the prompt.
	Stdin string            `json:"stdin"`
	Env   map[string]string `json:"env"`
}

// Launches returns the starts with a prompt of the stand-in that is installed in dir, in order.
func Launches(dir string) ([]Launch, error) {
	return readLines[Launch](filepath.Join(dir, launchesFile))
}

// Start is one start of the stand-in. It is recorded before the stand-in does anything else, so it also tells of a
// process that was killed before it had read its prompt.
type Start struct {
	PID  int      `json:"pid"`
	Args []string `json:"args"`
}

// Starts returns the starts of the stand-in that is installed in dir, in order.
func Starts(dir string) ([]Start, error) {
	return readLines[Start](filepath.Join(dir, startsFile))
}

// Requests returns the model calls of the stand-in that is installed in dir, in order, as the API would have received
// them.
func Requests(dir string) ([]Request, error) {
	return readLines[Request](filepath.Join(dir, requestsFile))
}

// readLines decodes the complete lines of a file. It skips a last line that is still being written.
func readLines[T any](path string) ([]T, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the stand-in's records: %w", err)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	var items []T
	for line := range bytes.Lines(whole) {
		var item T
		if err := json.Unmarshal(line, &item); err != nil {
			return nil, fmt.Errorf("read the stand-in's records: %s: %w", path, err)
		}
		items = append(items, item)
	}
	return items, nil
}

// records is the directory with the files that all processes of one installation share.
type records struct{ dir string }

// add appends v to one of the files. It ignores errors, because the records serve tests and must not change the
// behaviour of the stand-in.
func (r records) add(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return
	}
	file, err := os.OpenFile(filepath.Join(r.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = file.Write(append(data, '\n')) // in one write, so that lines of several processes do not mix
	_ = file.Close()
}

// count counts its calls with each key, by all processes of the installation. It returns the number of earlier calls
// with this key.
func (r records) count(key string) int {
	for n := 0; ; n++ {
		path := filepath.Join(r.dir, countsDir, fmt.Sprintf("%s.%d", key, n))
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			_ = file.Close()
		}
		return n
	}
}
