package claude

import (
	"context"
	"os"
	"slices"

	"github.com/google/uuid"
)

// nowhere is an address at which nothing answers.
const nowhere = "http://127.0.0.1:1"

// Names returns the full name of the model that this CLI takes for a model or an alias, as its first event says it; ""
// if it does not say it. Names calls no API: it starts the CLI in an empty directory, without credentials and with an
// address where nothing answers. For a cloud's provider it returns "", because the CLI then calls that one.
func (c *CLI) Names(ctx context.Context, model string) string {
	for _, p := range providers() {
		if isOn(lookupVariable(c.options.Environ, p.enabledBy)) {
			return ""
		}
	}
	dir, err := os.MkdirTemp("", "claudeops-model-*")
	if err != nil {
		return ""
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if user := c.options.User; user != nil { // a CLI that agents can write runs as they do
		if err := os.Chown(dir, user.UID, user.GID); err != nil {
			return ""
		}
	}
	asked := *c
	asked.options.ConfigDir, asked.options.MaxRetries = dir, -1
	asked.options.Environ = append(slices.Clone(c.options.Environ), "ANTHROPIC_BASE_URL="+nowhere,
		"ANTHROPIC_API_KEY=none", "ANTHROPIC_AUTH_TOKEN=", "CLAUDE_CODE_OAUTH_TOKEN=")
	ctx, said := context.WithCancel(ctx)
	defer said()
	result, _ := asked.Run(ctx, Invocation{ // it fails, because it is stopped or cannot call the API
		SessionID: uuid.NewString(), Prompt: "hello", Model: model, Dir: dir, MaxTurns: 1,
		API: &Endpoint{URL: nowhere, Key: "none"}, Limits: Limits{Wall: askTimeout},
	}, func(p Progress) {
		if p.SessionID != "" { // the first event, which has the name as well
			said()
		}
	})
	return result.Model
}
