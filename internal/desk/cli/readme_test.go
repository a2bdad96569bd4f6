package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
	"github.com/claudeops/claudeops/workflows"
)

// temporalCommands returns the commands of Temporal's own tools in docs/temporal-tools.md, split into words.
func temporalCommands(t *testing.T, program string) [][]string {
	t.Helper()
	return commandsOf(t, filepath.Join(simtest.ModuleRoot(t), "docs", "temporal-tools.md"), program)
}

// commandsOf returns the commands of program in the shell blocks of a page.
func commandsOf(t *testing.T, page, program string) [][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var commands [][]string
	inShell := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimLeft(line, " ") // a block can be in a list
		switch {
		case strings.HasPrefix(line, "```"):
			inShell = strings.TrimSpace(line) == "```sh"
		case inShell && strings.HasPrefix(line, program+" "):
			commands = append(commands, shellWords(t, line))
		}
	}
	return commands
}

// shellWords splits a line into words like a shell. It supports quotes only around whole words.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	for line = strings.TrimSpace(line); line != "" && line[0] != '#'; line = strings.TrimSpace(line) {
		word, rest, _ := strings.Cut(line, " ")
		if quote := line[:1]; quote == "'" || quote == `"` {
			var closed bool
			word, rest, closed = strings.Cut(line[1:], quote)
			require.True(t, closed, "an open quote in %s", line)
		}
		words, line = append(words, word), rest
	}
	return words
}

// TestReadmeStarter checks that claudeops accepts the claudeops commands of the README and of all pages below docs.
func TestReadmeStarter(t *testing.T) {
	t.Parallel()
	commands := commandsOf(t, filepath.Join(simtest.ModuleRoot(t), "README.md"), "claudeops")
	require.Greater(t, len(commands), 7)
	for _, pattern := range []string{"*.md", filepath.Join("runbooks", "*.md")} {
		pages, err := filepath.Glob(filepath.Join(simtest.ModuleRoot(t), "docs", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, pages)
		for _, page := range pages {
			commands = append(commands, commandsOf(t, page, "claudeops")...)
		}
	}
	for _, words := range commands {
		root := rootCommand(&console.Console{})
		command, rest, err := root.Find(words[1:])
		require.NoError(t, err, "%q", words)
		require.NoError(t, command.ParseFlags(rest), "%q", words)
		require.NoError(t, command.ValidateArgs(command.Flags().Args()), "%q", words)
		require.True(t, command.Runnable(), "%q", words)
	}
}

// TestTemporalCommands checks the documented commands of temporal and tctl: each must use its own program's flags. The
// inputs must pass the strict decoding of the workflows.
func TestTemporalCommands(t *testing.T) {
	t.Parallel()
	flags := map[string][]string{ // the flags of start, signal and update; tctl 1.18 has no updates
		"temporal": {"--type", "--task-queue", "--workflow-id", "--name", "--input"},
		"tctl":     {"--workflow_type", "--taskqueue", "--workflow_id", "--name", "--input"},
	}
	cfg, err := config.Load(clitest.Environment(t))
	require.NoError(t, err)
	inputs := map[string][]string{}
	for program, names := range flags {
		for _, words := range temporalCommands(t, program) {
			require.Equal(t, "workflow", words[1])
			verb, rest := words[2], words[3:]
			if verb == "update" {
				require.Equal(t, "execute", rest[0])
				rest = rest[1:]
			}
			given := map[string]string{}
			for i := 0; i < len(rest); i += 2 {
				require.Contains(t, names, rest[i], "%q", words)
				given[rest[i]] = rest[i+1]
			}
			input := given["--input"]
			switch {
			case verb == "start":
				require.Equal(t, workflows.ChainWorkflow, given[names[0]])
				require.Equal(t, cfg.Worker.TaskQueue, given[names[1]])
				requireStrict(t, new(workflows.ChainInput), input)
			case verb == "signal" && given["--name"] == workflows.EscalateSignalName:
				require.NotEmpty(t, given[names[2]])
				requireStrict(t, new(workflows.EscalateSignal), input)
			case given["--name"] == workflows.ResolveGate: // as an update, or a signal
				require.NotEmpty(t, given[names[2]])
				requireAnswer(t, input)
			default:
				require.Fail(t, "a command that this test does not know", "%q", words)
			}
			inputs[program] = append(inputs[program], input)
		}
	}
	require.Len(t, inputs["temporal"], 3)
	require.Equal(t, inputs["temporal"], inputs["tctl"], "both do the same")
}

// requireAnswer checks that input is a valid answer to a gate.
func requireAnswer(t *testing.T, input string) {
	t.Helper()
	var answer escalation.GateAnswer
	decoder := json.NewDecoder(strings.NewReader(input))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&answer), input)
	require.NoError(t, answer.Validate(), input)
}

// requireStrict decodes input as the workflows do, and validates it.
func requireStrict(t *testing.T, target interface{ Validate() error }, input string) {
	t.Helper()
	require.True(t, json.Valid([]byte(input)), input)
	require.NoError(t, json.Unmarshal([]byte(input), target))
	require.NoError(t, target.Validate(), input)
}

// TestInputFieldsAreDocumented checks that the table in docs/chains.md lists exactly the fields of
// workflows.ChainInput.
func TestInputFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(simtest.ModuleRoot(t), "docs", "chains.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| field of the input | meaning |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for row := range strings.Lines(table) {
		documented = append(documented, strings.Split(row, "`")[1])
	}
	var fields []string
	for field := range reflect.TypeFor[workflows.ChainInput]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "carried" { // the continue-as-new state, which people do not set
			fields = append(fields, name)
		}
	}
	require.ElementsMatch(t, fields, documented)
}
