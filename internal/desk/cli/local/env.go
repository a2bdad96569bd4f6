package local

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
)

// ClientSettings is the result of `env`.
type ClientSettings struct {
	// Variables holds the environment variables for connecting to the server of `claudeops up`. Temporal's command-line
	// programs, temporal and tctl, read these variables. Programs that use Temporal's SDKs read them, too.
	Variables []Variable `json:"variables"`
	// Pages is the link that opens the pages; empty if they are not served.
	Pages string `json:"pages,omitempty"`
	// WebUI is the link that opens Temporal's Web UI; empty if the server has no Web UI.
	WebUI string `json:"web_ui,omitempty"`
}

// Variable is one environment variable.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (a *app) envCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print what temporal, tctl and a browser need for the server of `claudeops up`",
		Long: "Env prints lines for a shell that lead temporal and tctl to the `claudeops up` on this state " +
			"directory, and the links\nthat open its pages and Temporal's Web UI:\n\n  eval \"$(claudeops env)\"\n\n" +
			"The lines and the links hold the token of the server: whoever has it may do everything there.",
		Args: console.NoArguments,
		RunE: func(*cobra.Command, []string) error { return a.env() },
	}
}

func (a *app) env() error {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return err
	}
	server, err := supervisor.FindLocal(cfg.State.Dir)
	if err != nil {
		return fmt.Errorf("%w; start it, or set CLAUDEOPS_STATE_DIR to that of one that runs", err)
	}
	settings := settingsFor(server)
	return a.Print(settings, func(w io.Writer) { writeClientSettings(w, settings) })
}

// settingsFor returns the settings for connecting to server. The variables with CLI in their names are for tctl. The
// others are for the program temporal and for Temporal's SDKs.
func settingsFor(server supervisor.LocalServer) ClientSettings {
	settings := ClientSettings{Variables: []Variable{
		{"TEMPORAL_ADDRESS", server.Address},
		{"TEMPORAL_NAMESPACE", embedded.DefaultNamespace},
		{"TEMPORAL_API_KEY", server.Token},
		{"TEMPORAL_TLS", "false"}, // without this, the key would switch TLS on
		{"TEMPORAL_CLI_ADDRESS", server.Address},
		{"TEMPORAL_CLI_NAMESPACE", embedded.DefaultNamespace},
		{"TEMPORAL_CLI_AUTH", "Bearer " + server.Token},
	}}
	if server.Pages != "" {
		settings.Pages = access.Link(server.Pages, server.Token)
	}
	if server.WebUI != "" {
		settings.WebUI = access.Link(server.WebUI, server.Token)
	}
	return settings
}

func writeClientSettings(w io.Writer, settings ClientSettings) {
	for _, variable := range settings.Variables {
		_, _ = fmt.Fprintf(w, "export %s=%s\n", variable.Name, console.ShellQuote(variable.Value))
	}
	if settings.Pages != "" {
		_, _ = fmt.Fprintf(w, "# Pages: %s\n", settings.Pages)
	}
	if settings.WebUI != "" {
		_, _ = fmt.Fprintf(w, "# Temporal's Web UI: %s\n", settings.WebUI)
	}
}
