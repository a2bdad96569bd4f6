package claude

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	// MaxPromptBytes is the length of the longest prompt that the CLI reads from its standard input.
	MaxPromptBytes = 10_000_000
	// MaxArgumentBytes is the length of the longest argument that the operating system accepts. It limits
	// Invocation.SystemPrompt, Invocation.Schema and each rule.
	MaxArgumentBytes = 131_071
)

// toolName matches the name of a built-in tool. It does not match "default", which would mean every tool.
var toolName = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]*$`)

// validate returns an *Error of KindInvalid for the first invalid field of the invocation, or nil.
func (i Invocation) validate() error {
	checks := []func() error{i.checkIdentity, i.checkPrompt, i.checkRules, i.checkSchema, i.checkLimits, i.checkPlace}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkIdentity checks the ids and the model. The ids must be UUIDs. Otherwise the CLI would search for them among the
// titles of conversations.
func (i Invocation) checkIdentity() error {
	if !isUUID(i.SessionID) {
		return invalid("the session id %q is not a UUID", i.SessionID)
	}
	if i.Resume != "" && !isUUID(i.Resume) {
		return invalid("the session id to resume, %q, is not a UUID", i.Resume)
	}
	if strings.TrimSpace(i.Model) == "" || strings.HasPrefix(i.Model, "-") {
		return invalid("%q is not a model", i.Model)
	}
	return nil
}

func isUUID(id string) bool { return len(id) == 36 && uuid.Validate(id) == nil }

func (i Invocation) checkPrompt() error {
	if strings.TrimSpace(i.Prompt) == "" {
		return invalid("the prompt is blank")
	}
	if size := len(guardPrompt(i.Prompt)); size > MaxPromptBytes {
		return invalid("the prompt is %d bytes long; the CLI takes at most %d", size, MaxPromptBytes)
	}
	return nil
}

func (i Invocation) checkRules() error {
	for _, tool := range i.Tools {
		if !toolName.MatchString(tool) {
			return invalid("%q is not the name of a built-in tool", tool)
		}
	}
	for _, rules := range [][]string{i.AllowedTools, i.DisallowedTools} {
		for _, rule := range rules {
			if strings.TrimSpace(rule) == "" || strings.HasPrefix(rule, "-") {
				return invalid("%q is not a permission rule", rule)
			}
		}
	}
	return nil
}

// checkSchema checks that the schema is a JSON object. One version of the CLI silently ignores a schema that it does
// not understand.
func (i Invocation) checkSchema() error {
	var object map[string]json.RawMessage
	if i.Schema != "" && json.Unmarshal([]byte(i.Schema), &object) != nil {
		return invalid("the schema of the structured output is not a JSON object")
	}
	return nil
}

func (i Invocation) checkLimits() error {
	if i.MaxTurns < 0 || i.MaxBudgetUSD < 0 {
		return invalid("turns (%d) and budget (%g) must not be negative", i.MaxTurns, i.MaxBudgetUSD)
	}
	for _, limit := range []time.Duration{i.Limits.Wall, i.Limits.FirstByte, i.Limits.Idle, i.Limits.Grace} {
		if limit < 0 {
			return invalid("a time limit must not be negative, but one is %s", limit)
		}
	}
	return nil
}

func (i Invocation) checkPlace() error {
	info, err := os.Stat(i.Dir)
	if err != nil {
		return invalid("cannot run in the working directory %q: %w", i.Dir, err)
	}
	if !info.IsDir() {
		return invalid("cannot run in %q: it is not a directory", i.Dir)
	}
	for name, value := range i.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return invalid("the variable %q cannot be put into an environment", name)
		}
	}
	return nil
}

// checkArguments rejects arguments that the operating system would reject with a less clear error.
func checkArguments(args []string) error {
	flag := ""
	for _, arg := range args {
		if strings.HasPrefix(arg, "--") {
			flag = arg
		}
		if len(arg) > MaxArgumentBytes {
			return invalid("the value of %.40s is %d bytes long; an argument takes at most %d", flag, len(arg),
				MaxArgumentBytes)
		}
		if strings.ContainsRune(arg, 0) {
			return invalid("the value of %.40s contains a NUL byte", flag)
		}
	}
	return nil
}

// invalid returns an error of KindInvalid. It takes the same arguments as fmt.Errorf; a %w sets the cause.
func invalid(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: KindInvalid, Message: err.Error(), ExitCode: -1, Err: err}
}
