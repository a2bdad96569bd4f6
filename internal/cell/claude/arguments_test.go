package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	ownID    = "11111111-1111-4111-8111-111111111111"
	parentID = "22222222-2222-4222-8222-222222222222"
)

// full returns an invocation that uses every field.
func full(t *testing.T) Invocation {
	t.Helper()
	return Invocation{
		SessionID:       ownID,
		Prompt:          "look",
		Model:           "haiku",
		SystemPrompt:    "You are an observer.",
		Schema:          `{"type":"object"}`,
		Tools:           []string{"Bash", "Read"},
		AllowedTools:    []string{"Bash(curl:*)", "Bash(echo a, b:*)"},
		DisallowedTools: []string{"Bash(rm:*)"},
		MaxTurns:        30,
		MaxBudgetUSD:    0.25,
		Limits:          Limits{Wall: time.Minute, FirstByte: time.Second, Idle: time.Second, Grace: time.Second},
		Dir:             t.TempDir(),
		Env:             map[string]string{"CLAUDEOPS_CHAIN_ID": "chain-1"},
		Guard:           &Guard{Settings: map[string]any{"hooks": map[string]any{"PreToolUse": []any{}}}, Env: map[string]string{"SHELL": "/bin/bash"}},
	}
}

// minimal returns an invocation with the required fields only.
func minimal(t *testing.T) Invocation {
	t.Helper()
	return Invocation{SessionID: ownID, Prompt: "look", Model: "haiku", Dir: t.TempDir()}
}

func cliOf(text string) *CLI {
	number, err := parseVersion(text)
	if err != nil {
		panic(err)
	}
	return &CLI{path: "/opt/claude", version: number, profile: profileOf(number), options: Options{}.withDefaults()}
}

// TestArguments compares the arguments for every way to start a conversation, on both versions, with golden files that
// have one argument per line.
func TestArguments(t *testing.T) {
	t.Parallel()
	resuming := func(id string, i Invocation) Invocation {
		i.Resume = id
		return i
	}
	for _, version := range measured() {
		for name, invocation := range map[string]Invocation{
			"fresh":   full(t),
			"resume":  resuming(ownID, full(t)),
			"fork":    resuming(parentID, full(t)),
			"minimal": minimal(t),
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				args, err := cliOf(version).arguments(invocation)
				require.NoError(t, err)
				require.NotContains(t, args, "--dangerously-skip-permissions")
				path := filepath.Join("testdata", "arguments", version+"-"+name+".golden")
				if *update {
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				}
				requireGolden(t, path, []byte(strings.Join(args, "\n")+"\n"))
			})
		}
	}
}

func TestArgumentsOfAnySizeAreRefusedClearly(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxArgumentBytes+1)
	for want, change := range map[string]func(*Invocation){
		"--append-system-prompt": func(i *Invocation) { i.SystemPrompt = long },
		"--json-schema":          func(i *Invocation) { i.Schema = `{"description":"` + long + `"}` },
		"--allowedTools":         func(i *Invocation) { i.AllowedTools = []string{"Bash(" + long + ")"} },
		"--model":                func(i *Invocation) { i.Model = "haiku\x00" },
	} {
		invocation := full(t)
		change(&invocation)
		_, err := cliOf("2.1.332").arguments(invocation)
		require.Equal(t, KindInvalid, KindOf(err))
		require.ErrorContains(t, err, want)
	}
	invocation := full(t)
	invocation.SystemPrompt = long[:MaxArgumentBytes]
	_, err := cliOf("2.1.332").arguments(invocation)
	require.NoError(t, err)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	require.NoError(t, full(t).validate())
	require.NoError(t, minimal(t).validate())
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	for want, change := range map[string]func(*Invocation){
		"the session id":               func(i *Invocation) { i.SessionID = "session-1" },
		"the session id \"{1111":       func(i *Invocation) { i.SessionID = "{" + ownID + "}" },
		"the session id to resume":     func(i *Invocation) { i.Resume = "latest" },
		"is not a model":               func(i *Invocation) { i.Model = "--dangerously-skip-permissions" },
		"\" \" is not a model":         func(i *Invocation) { i.Model = " " },
		"the prompt is blank":          func(i *Invocation) { i.Prompt = " \n\t" },
		"the prompt is 10000001 bytes": func(i *Invocation) { i.Prompt = strings.Repeat("x", MaxPromptBytes+1) },
		"name of a built-in tool":      func(i *Invocation) { i.Tools = []string{"default"} },
		"\"Bash,Read\" is not":         func(i *Invocation) { i.Tools = []string{"Bash,Read"} },
		"permission rule":              func(i *Invocation) { i.AllowedTools = []string{"--dangerously-skip-permissions"} },
		"\"\" is not a permission":     func(i *Invocation) { i.DisallowedTools = []string{""} },
		"schema":                       func(i *Invocation) { i.Schema = `{"type":` },
		"must not be negative":         func(i *Invocation) { i.MaxTurns = -1 },
		"but one is -1s":               func(i *Invocation) { i.Limits.Idle = -time.Second },
		"no such file":                 func(i *Invocation) { i.Dir = filepath.Join(i.Dir, "missing") },
		"not a directory":              func(i *Invocation) { i.Dir = file },
		"cannot be put into":           func(i *Invocation) { i.Env = map[string]string{"A=B": "c"} },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			invocation := full(t)
			change(&invocation)
			err := invocation.validate()
			require.Equal(t, KindInvalid, KindOf(err))
			require.ErrorContains(t, err, want)

			_, err = cliOf("2.1.332").Run(t.Context(), invocation, nil)
			require.ErrorContains(t, err, want, "nothing is started")
		})
	}
}

func TestGuardPrompt(t *testing.T) {
	t.Parallel()
	require.Equal(t, "\n/help", guardPrompt("/help"))
	require.Equal(t, " /help", guardPrompt(" /help"))
	require.Equal(t, "look at /help", guardPrompt("look at /help"))
}
