package agent

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// EnsureUser returns the configuration with the account that agents run as. If the account is missing, EnsureUser creates
// it and reports so. An account that the operator has named is never missing.
func EnsureUser(ctx context.Context, cfg config.Config) (_ config.Config, created bool, err error) {
	if !cfg.Claude.HasAgentUser() || cfg.Claude.Account != nil {
		return cfg, false, nil
	}
	failure := claude.CreateUser(ctx, cfg.Claude.AgentUser)
	if err := cfg.Claude.FindAccount(); err != nil { // another worker may have created it in the meantime
		if failure == nil {
			failure = err
		}
		return cfg, false, fmt.Errorf("create the user %s, as whom agents run: %w; create it, or set %sAGENT_USER to another user "+
			"(or to none: then agents are root)", cfg.Claude.AgentUser, failure, config.Prefix)
	}
	return cfg, failure == nil, nil
}
