package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// arguments returns the command line for an invocation, without the prompt. The prompt is passed on standard input for
// two reasons. First, several flags take any number of values, and would take the prompt as a further value. Second, a
// prompt can be longer than the system's limit for one argument.
func (c *CLI) arguments(i Invocation) ([]string, error) {
	settings, err := c.settings(i.Guard)
	if err != nil {
		return nil, err
	}
	args := []string{"-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"}
	args = append(args, denyByDefault(i)...)
	args = append(args, "--settings", settings)
	args = append(args, conversation(i)...)
	args = append(args, task(i)...)
	if err := checkArguments(args); err != nil {
		return nil, err
	}
	return args, nil
}

// denyByDefault returns flags that disable all settings of the working directory and of the user. It also returns the
// flags that grant the invocation's own tools and rules. Without --system-prompt-snapshot a resumed conversation keeps
// the system prompt of its first start, and ignores the system prompt of this invocation.
func denyByDefault(i Invocation) []string {
	args := []string{
		"--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands",
		"--restricted", "--system-prompt-snapshot", "off",
		"--permission-mode", "dontAsk", "--tools", strings.Join(i.Tools, ","),
	}
	if len(i.AllowedTools) > 0 {
		args = append(append(args, "--allowedTools"), i.AllowedTools...)
	}
	if len(i.DisallowedTools) > 0 {
		args = append(append(args, "--disallowedTools"), i.DisallowedTools...)
	}
	return args
}

// conversation returns the flags for the conversation that the CLI writes (SessionID), and for the conversation that
// the CLI continues (Resume).
func conversation(i Invocation) []string {
	switch i.Resume {
	case "":
		return []string{"--session-id", i.SessionID}
	case i.SessionID:
		return []string{"--resume", i.Resume}
	default:
		return []string{"--resume", i.Resume, "--fork-session", "--session-id", i.SessionID}
	}
}

// task returns the flags for the model, the system prompt, the schema, the turns and the budget.
func task(i Invocation) []string {
	args := []string{"--model", i.Model}
	if i.SystemPrompt != "" {
		args = append(args, "--append-system-prompt", i.SystemPrompt)
	}
	if i.Schema != "" {
		args = append(args, "--json-schema", i.Schema)
	}
	if i.MaxTurns > 0 {
		args = append(args, "--max-turns", strconv.Itoa(i.MaxTurns))
	}
	if i.MaxBudgetUSD > 0 {
		args = append(args, "--max-budget-usd", strconv.FormatFloat(i.MaxBudgetUSD, 'f', -1, 64))
	}
	return args
}

// settings returns all settings of the CLI for an invocation, as JSON.
func (c *CLI) settings(guard *Guard) (string, error) {
	// the CLI deletes older transcripts at its start
	settings := map[string]any{"cleanupPeriodDays": c.options.RetentionDays}
	if guard != nil {
		maps.Copy(settings, guard.Settings)
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return "", fmt.Errorf("encode the CLI's settings: %w", err)
	}
	return string(text), nil
}

// guardPrompt puts a line break before a prompt that begins with "/". Without the line break the CLI would read the
// prompt as a slash command, and answer the command without asking the model. The line break suffices, because the CLI
// checks no more than the first character.
func guardPrompt(prompt string) string {
	if strings.HasPrefix(prompt, "/") {
		return "\n" + prompt
	}
	return prompt
}
