package api

import (
	"context"
	"encoding/json"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

const policyTag = "policy"

// checkRequest is a call of an agent that nobody makes.
type checkRequest struct {
	Body struct {
		Tier    escalation.Tier `json:"tier"`
		Tool    string          `json:"tool,omitempty" doc:"The tool that is called; Bash by default."`
		Command string          `json:"command,omitempty" doc:"The command of Bash."`
		Input   json.RawMessage `json:"input,omitempty" doc:"The input of the tool, an object, in place of a command."`
	}
}

func (a *API) registerPolicy(r routes) {
	add(r, route[checkRequest, operations.Decision]{
		role: access.View, pattern: "POST /policy/check", id: "checkCall", tag: policyTag,
		summary: "Get what the guard would decide on a call. Nothing is run or recorded",
	}, func(_ context.Context, in *checkRequest) (operations.Decision, error) {
		call := operations.Call{Tier: in.Body.Tier, Tool: in.Body.Tool, Command: in.Body.Command, Input: in.Body.Input}
		return a.operations.Policy.Try(call, "")
	})
}
