package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/web/api"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// servedCommands lists the commands that a server's API can do.
var servedCommands = []string{
	"run", "chains", "chain", "watch", "escalate", "cancel", "gate", "incidents", "incidents list", "incidents show",
	"incidents close", "talk", "memory", "memory list", "memory show", "memory add", "memory confirm", "memory edit",
	"memory delete", "memory export", "plan", "plan review", "plan run", "plan status",
	"schedule", "schedule list", "schedule describe", "schedule pause", "schedule resume", "schedule trigger",
}

// ownCommands lists the commands that need neither a worker nor a server. CLAUDEOPS_SERVER does not concern them.
var ownCommands = []string{"config", "policy", "completion", "help", "__complete", "__completeNoDesc"}

// useServer makes the command use the server that the flag or CLAUDEOPS_SERVER names, if one of them does.
func useServer(c *console.Console, command *cobra.Command, flag string) error {
	address := cmp.Or(flag, console.Variable(c.Environ, config.ServerVariable))
	if address == "" {
		return nil
	}
	_, name, _ := strings.Cut(command.CommandPath(), " ")
	first, _, _ := strings.Cut(name, " ")
	switch {
	case slices.Contains(servedCommands, name):
	case flag == "" && slices.Contains(ownCommands, first):
		return nil
	default:
		return fmt.Errorf("`%s` works beside the worker only: run it there, without --server and %s",
			command.CommandPath(), config.ServerVariable)
	}
	if actor := command.Flags().Lookup("actor"); actor != nil && actor.Changed {
		return errors.New("--actor does not go with a server: it takes the name from your token")
	}
	token, err := tokenOf(c.Environ)
	if err != nil {
		return err
	}
	client, err := api.NewClient(api.ClientOptions{URL: address, Token: token, Mask: c.Masks()})
	if err != nil {
		return err
	}
	local := c.Operations.Operations
	c.Operations = &console.Operations{
		Operations: local, Server: address,
		Chains: client.Chains(), Plans: client.Plans(), Gates: client.Gates(), Incidents: client.Incidents(),
		Schedules: client.Schedules(), Memories: client.Memories(), Conversations: client.Conversations(),
	}
	return nil
}

// tokenOf returns the token in the environment, or in the file that the environment names; empty if there is none.
func tokenOf(environ []string) (string, error) {
	if token := console.Variable(environ, config.TokenVariable); token != "" {
		return token, nil
	}
	file := console.Variable(environ, config.TokenFileVariable)
	if file == "" {
		return "", nil
	}
	data, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return "", fmt.Errorf("%s: %w", config.TokenFileVariable, err)
	}
	return strings.TrimSpace(string(data)), nil
}
