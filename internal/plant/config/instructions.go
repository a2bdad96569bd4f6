package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/escalation"
)

// MaxInstructions limits a file of instructions for agents, in characters. Each session that gets it pays for it.
const MaxInstructions = 8_000

// placeInstructions makes the paths of a service's files of instructions absolute, and checks that they can be used.
// They must be below dir, the directory of the services file.
func placeInstructions(service *escalation.Service, dir string) error {
	for _, file := range []struct {
		key  string
		path *string
	}{{"runbook_file", &service.RunbookFile}, {"look_file", &service.LookFile}} {
		if *file.path == "" {
			continue
		}
		if !filepath.IsLocal(*file.path) {
			return fmt.Errorf("service %q: %s is %q, and must be a path below the directory of the services file",
				service.Name, file.key, *file.path)
		}
		*file.path = filepath.Join(dir, *file.path)
		if _, err := ReadInstructions(*file.path); err != nil {
			return fmt.Errorf("service %q: %s: %w", service.Name, file.key, err)
		}
	}
	return nil
}

// ReadInstructions reads a file of instructions for agents.
func ReadInstructions(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the operator's own file
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is no file", path))
	}
	content, err := io.ReadAll(io.LimitReader(file, utf8.UTFMax*MaxInstructions+1))
	switch text := string(content); {
	case err != nil:
		return "", err
	case utf8.RuneCountInString(text) > MaxInstructions:
		return "", fmt.Errorf("%s has more than %d characters", path, MaxInstructions)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("%s is no text in UTF-8", path)
	default:
		return text, nil
	}
}
