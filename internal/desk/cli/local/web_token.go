package local

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/desk/cli/console"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/program"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke the tokens of people and programs",
		Long: "Token changes the file of tokens of this host (CLAUDEOPS_WEB_TOKENS_FILE). The file has the hashes of " +
			"the tokens.\n`claudeops web` and `claudeops up` use each change at once.",
	}
	cmd.AddCommand(a.createTokenCommand(), a.listTokensCommand(), a.revokeTokenCommand())
	return cmd
}

func (a *app) createTokenCommand() *cobra.Command {
	var roles []string
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token, and print it once",
		Long: "Create prints a new token. Nothing keeps the token itself, so give it to its owner now. What its " +
			"owner does is\nrecorded under NAME.",
		Example: "  claudeops web token create ada --role operate\n  claudeops web token create grafana --role view",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(roles) == 0 {
				return program.Misuse(errors.New("--role is missing: it must be view, answer, operate, alert or talk"))
			}
			return a.createToken(access.Token{Name: args[0], Roles: rolesOf(roles)}, expires)
		},
	}
	cmd.Flags().StringSliceVar(&roles, "role", nil,
		"what the token permits: view, answer, operate, alert or talk; may be repeated")
	cmd.Flags().DurationVar(&expires, "expires", 0,
		"time after which the token is not valid any more, such as 720h (default never)")
	return cmd
}

func rolesOf(names []string) []access.Role {
	roles := make([]access.Role, len(names))
	for i, name := range names {
		roles[i] = access.Role(name)
	}
	return roles
}

// createdToken is the output of `web token create`.
type createdToken struct {
	Name  string        `json:"name"`
	Roles []access.Role `json:"roles"`
	Token string        `json:"token"`
}

func (a *app) createToken(token access.Token, expires time.Duration) error {
	if err := escalation.CheckActor(token.Name); err != nil { // the name answers at gates
		return program.Misuse(errors.New("NAME must be a plain name of at most 200 characters"))
	}
	if expires < 0 {
		return program.Misuse(errors.New("--expires must be a duration above zero, such as 720h"))
	}
	file, err := a.tokenFile()
	if err != nil {
		return err
	}
	token.CreatedAt = a.Clock().UTC().Truncate(time.Second)
	if expires > 0 {
		token.ExpiresAt = token.CreatedAt.Add(expires)
	}
	secret, err := file.Create(token)
	if errors.Is(err, access.ErrTokenInvalid) {
		return program.Misuse(err)
	}
	if err != nil {
		return err
	}
	return a.Print(createdToken{token.Name, token.Roles, secret}, func(w io.Writer) { _, _ = fmt.Fprintln(w, secret) })
}

// tokenFile returns the file of tokens of this host.
func (a *app) tokenFile() (*access.TokenFile, error) {
	cfg, err := config.Load(a.Environ)
	if err != nil {
		return nil, err
	}
	return access.OpenTokens(cfg.Web.TokensFile), nil
}

// listedToken is one row of `web token list`.
type listedToken struct {
	Name      string        `json:"name"`
	Roles     []access.Role `json:"roles"`
	CreatedAt time.Time     `json:"created_at"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
}

func (a *app) listTokensCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens", Args: console.NoArguments,
		RunE: func(*cobra.Command, []string) error { return a.listTokens() },
	}
}

func (a *app) listTokens() error {
	file, err := a.tokenFile()
	if err != nil {
		return err
	}
	tokens, err := file.List()
	if err != nil {
		return err
	}
	rows := []listedToken{} // an empty list is [] in JSON
	for _, token := range tokens {
		rows = append(rows, listedToken{token.Name, token.Roles, token.CreatedAt, token.ExpiresAt})
	}
	return a.Print(rows, func(w io.Writer) {
		if len(rows) == 0 {
			_, _ = fmt.Fprintln(w, "There are no tokens. `claudeops web token create NAME --role ROLE` makes one.")
		}
		for _, row := range rows {
			var roles []string
			for _, role := range row.Roles {
				roles = append(roles, string(role))
			}
			until := "no end"
			if !row.ExpiresAt.IsZero() {
				until = "until " + a.Clock.Moment(row.ExpiresAt)
			}
			_, _ = fmt.Fprintf(w, "%s  %s  created %s  %s\n", console.Printable(row.Name, escalation.MaxActor),
				strings.Join(roles, ","),
				a.Clock.Moment(row.CreatedAt), until)
		}
	})
}

func (a *app) revokeTokenCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a token; its sessions end at once", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := a.tokenFile()
			if err != nil {
				return err
			}
			if err := file.Revoke(args[0]); err != nil {
				return err
			}
			a.Say("The token %s is revoked.", console.Printable(args[0], escalation.MaxActor))
			return nil
		},
	}
}
