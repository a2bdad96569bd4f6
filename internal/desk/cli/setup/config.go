package setup

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/plant/config"
)

func (a *app) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print every setting, its value and its meaning",
		Args:  console.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := config.Load(a.Environ)
			return console.PrintResult(a.Console, cfg.Settings(), err, writeSettings)
		},
	}
}

func writeSettings(w io.Writer, settings []config.Setting) {
	var group string
	for _, setting := range settings {
		if setting.Group != group {
			group = setting.Group
			_, _ = fmt.Fprintf(w, "\n# %s\n", group)
		}
		_, _ = fmt.Fprintf(w, "\n%s=%s  (%s)\n  %s\n", setting.Name, setting.Value, setting.Source, setting.Meaning)
	}
}
