package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/redact"
)

func (a *app) webCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Serve the pages and the API beside the workers of a team",
		Long: "Web serves the pages on which people see chains and direct them, and the API. It uses the same " +
			"Temporal and the same\nrecords as the workers. `claudeops up` serves them itself. docs/web.md describes " +
			"tokens, proxies and TLS.",
		Args: console.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.web(cmd.Context()) },
	}
	cmd.AddCommand(a.tokenCommand())
	return cmd
}

// servedPages is the output of `web`. The command prints it as soon as the server is ready.
type servedPages struct {
	Pages      string `json:"pages"`
	TokensFile string `json:"tokens_file"`
	Tokens     int    `json:"tokens"`
}

func (a *app) web(ctx context.Context) error {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return err
	}
	tokens, err := access.OpenTokens(cfg.Web.TokensFile).List()
	if err != nil {
		return err
	}
	if !cfg.Web.IsLocal() && len(tokens) == 0 && len(cfg.Web.TrustedProxy) == 0 {
		return program.Misuse(fmt.Errorf("nobody could log in at %s: make a token with `claudeops web token create "+
			"NAME --role ROLE`, "+
			"or set CLAUDEOPS_WEB_TRUSTED_PROXY", cfg.Web.Listen))
	}
	if err := cfg.MakeDirs(); err != nil {
		return err
	}
	logger := supervisor.NewLogger(a.Stderr, cfg.Log, redact.New(a.Environ))
	pages, err := openPages(ctx, cfg, pageOptions{
		listen: cfg.Web.Listen, hint: "CLAUDEOPS_WEB_LISTEN", temporalUI: temporalUIOf(cfg.Notify, a.Environ),
		logger: logger,
	})
	if err != nil {
		return err
	}
	if err := pages.prepare(a.serverOperations(a.Environ, logger)); err != nil {
		return errors.Join(err, pages.close())
	}
	pages.serve(context.WithoutCancel(ctx))
	result := servedPages{pages.url(), cfg.Web.TokensFile, len(tokens)}
	err = a.Print(result, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "The pages are at %s. %d tokens are in %s.\nCtrl-C stops the server.\n",
			result.Pages, result.Tokens, result.TokensFile)
	})
	if err == nil {
		err = pages.wait(ctx)
	}
	return errors.Join(err, pages.close())
}

// temporalUIOf returns a function that returns the address of a chain in Temporal's Web UI; nil if the settings name
// none.
func temporalUIOf(settings config.Notify, environ []string) func(chainID, runID string) string {
	if settings.UIURL == "" {
		return nil
	}
	namespace := cmp.Or(console.Variable(environ, "TEMPORAL_NAMESPACE"), "default")
	root := strings.TrimSuffix(settings.UIURL, "/") + "/namespaces/" + url.PathEscape(namespace) + "/workflows/"
	return func(chainID, runID string) string {
		if runID == "" {
			return root + url.PathEscape(chainID)
		}
		return root + url.PathEscape(chainID) + "/" + url.PathEscape(runID)
	}
}

// wait waits until ctx ends or the server fails.
func (p *pageServer) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.ended:
		p.ended <- nil // the error is reported here; close must not report it again
		return err
	}
}

// serverOperations returns the operations of a server, which runs for longer than a command.
func (a *app) serverOperations(environ []string, logger *slog.Logger) *operations.Operations {
	return operations.New(operations.Options{
		Environ: environ, Logger: logger, Clock: a.Clock, Patience: a.Patience, Masked: func() {},
	})
}
