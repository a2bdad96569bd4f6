// Package envfile reads the file of settings, claudeops.env. It has the format of systemd's EnvironmentFile and of
// Compose's env_file: a variable a line, as NAME=value. A variable that has a value in the environment wins over the
// file.
package envfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hashicorp/go-envparse"
)

// Variable names the file. Without it, the file is Name in the user's configuration directory, if it is there.
const Variable = "CLAUDEOPS_ENV_FILE"

// Name is the file's path in the user's configuration directory ($XDG_CONFIG_HOME, else ~/.config).
const Name = "claudeops/claudeops.env"

// maxSize limits the file, in bytes.
const maxSize = 1 << 20

// File is a file of settings. The zero File has no settings.
type File struct {
	// Path is absolute; "" if there is no file.
	Path      string
	Variables []Entry
}

// Entry is a line that sets a variable.
type Entry struct {
	Name, Value string
	Line        int // from 1
}

// Find returns the path of the file that environ names, and whether the environment demands that it is there; "" if
// environ gives no place for one.
func Find(environ []string) (path string, demanded bool) {
	if path = strings.TrimSpace(lookUp(environ, Variable)); path != "" {
		return path, true
	}
	if dir := lookUp(environ, "XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, Name), false
	}
	if home := lookUp(environ, "HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", Name), false
	}
	return "", false
}

// Read reads the file that environ names. isSecret reports whether a variable may hold a credential: then nobody else
// may read the file. An error is a sentence that begins with the file's path and, for a mistake in a line, its number.
func Read(environ []string, isSecret func(name string) bool) (File, error) {
	path, demanded := Find(environ)
	if path == "" {
		return File{}, nil
	}
	if !filepath.IsAbs(path) {
		return File{}, fmt.Errorf("%s is %q; it must be an absolute path", Variable, path)
	}
	opened, err := os.Open(path) //nolint:gosec // the operator's own file
	if errors.Is(err, fs.ErrNotExist) && !demanded {
		return File{}, nil
	}
	if err != nil {
		return File{}, fmt.Errorf("read the settings: %w", err)
	}
	defer func() { _ = opened.Close() }()
	info, err := opened.Stat()
	if err != nil {
		return File{}, fmt.Errorf("read the settings: %w", err)
	}
	if err := check(info); err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	content, err := io.ReadAll(io.LimitReader(opened, maxSize))
	if err != nil {
		return File{}, fmt.Errorf("read the settings: %w", err)
	}
	file, err := parse(path, string(content))
	if err != nil {
		return File{}, err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		for _, entry := range file.Variables {
			if entry.Value != "" && isSecret(entry.Name) {
				return File{}, fmt.Errorf("%s:%d: %s is a secret, and with the mode %04o others can read the file; "+
					"do: chmod 0600 %s",
					path, entry.Line, entry.Name, mode, path)
			}
		}
	}
	return file, nil
}

// Append adds lines at the end of a file. If the file is missing, Append creates it, and only its owner can read it.
func Append(path string, lines []string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the operator's own file
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	text := strings.Join(lines, "\n") + "\n"
	info, err := file.Stat()
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err = file.ReadAt(last, info.Size()-1); last[0] != '\n' {
			text = "\n" + text
		}
	}
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	return nil
}

// check refuses a file that somebody else can change, because the file names the programs that run.
func check(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return errors.New("this is no file")
	case info.Size() > maxSize:
		return fmt.Errorf("the file has more than %d bytes", maxSize)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("with the mode %04o others can change the file; do: chmod go-w", info.Mode().Perm())
	}
	if owner, known := info.Sys().(*syscall.Stat_t); known && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("the file belongs to the user %d, who could change what runs here; do: chown", owner.Uid)
	}
	return nil
}

// parse parses each line by itself, to know its number.
func parse(path, content string) (File, error) {
	file := File{Path: path}
	seen := map[string]int{}
	number := 0
	for line := range strings.Lines(content) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), ";") { // a comment in systemd's files
			continue
		}
		variables, err := envparse.Parse(strings.NewReader(line))
		if failure, ok := errors.AsType[*envparse.ParseError](err); ok {
			err = failure.Err // the line's text can hold a secret, and the error does not
		}
		if err != nil {
			return File{}, fmt.Errorf("%s:%d: not a line such as NAME=value: %w", path, number, err)
		}
		for name, value := range variables {
			if first, twice := seen[name]; twice {
				return File{}, fmt.Errorf("%s:%d: %s is already set on line %d", path, number, name, first)
			}
			if name == Variable {
				return File{}, fmt.Errorf("%s:%d: %s names this file, and belongs in the environment", path, number,
					name)
			}
			seen[name] = number
			file.Variables = append(file.Variables, Entry{name, value, number})
		}
	}
	return file, nil
}

// Merge returns environ with the variables of the file that environ lacks. A variable without a value counts as
// missing, so that it does not hide a limit of the file.
func (f File) Merge(environ []string) []string {
	merged := slices.Clone(environ)
	for _, entry := range f.Variables {
		if strings.TrimSpace(lookUp(environ, entry.Name)) != "" {
			continue
		}
		merged = slices.DeleteFunc(merged, func(set string) bool { return strings.HasPrefix(set, entry.Name+"=") })
		merged = append(merged, entry.Name+"="+entry.Value)
	}
	return merged
}

// Line returns the number of the line that gives a variable its value; 0 if the file does not.
func (f File) Line(name, value string) int {
	for _, entry := range f.Variables {
		if entry.Name == name && entry.Value == value {
			return entry.Line
		}
	}
	return 0
}

func lookUp(environ []string, name string) (value string) {
	for _, entry := range environ {
		if rest, found := strings.CutPrefix(entry, name+"="); found {
			value = rest
		}
	}
	return value
}
