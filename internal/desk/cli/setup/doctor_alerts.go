package setup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/sources"
	webaccess "github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/plant/config"
)

// checkAlerts reports whether the sources of alerts have what they need. A source without a token of its own is closed.
func checkAlerts(cfg config.Config) finding {
	const check = "alerts"
	listed := cfg.Services.Alerts.Sources
	if len(listed) == 0 {
		return passed(check, "no source starts chains: the services file has no alerts.sources")
	}
	tokens, err := webaccess.OpenTokens(cfg.Web.TokensFile).List()
	if err != nil {
		return failed(check, err)
	}
	var closed []string
	for _, source := range listed {
		if _, err := sources.New(source, time.Now); err != nil {
			return failed(check, err)
		}
		if !slices.ContainsFunc(tokens, func(token webaccess.Token) bool {
			return token.Name == source.Name && token.Person().May(webaccess.Alert)
		}) {
			closed = append(closed, source.Name)
		}
	}
	if len(closed) > 0 {
		return noted(check, fmt.Sprintf("closed, because no token has the name: %s; make one with `claudeops web token "+
			"create %s --role alert`", strings.Join(closed, ", "), closed[0]))
	}
	return passed(check, plaintext.Count(len(listed), "source")+" can start chains")
}
