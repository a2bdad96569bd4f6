// Package sources reads the deliveries of monitoring systems. Each kind has a directory of its own. A source only
// translates: package escalation/alert decides what becomes of an alert.
package sources

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/desk/sources/alertmanager"
	"github.com/claudeops/claudeops/internal/desk/sources/grafana"
	"github.com/claudeops/claudeops/internal/desk/sources/pagerduty"
	"github.com/claudeops/claudeops/internal/desk/sources/templated"
	"github.com/claudeops/claudeops/internal/desk/sources/uptimekuma"
	"github.com/claudeops/claudeops/internal/escalation/alert"
)

// Source reads the deliveries of a monitoring system.
type Source interface {
	// Decode returns the alerts of a delivery. An error says in one sentence why the delivery cannot be used. Decode
	// changes neither argument, and never trusts them: the caller bounds the alerts.
	Decode(header http.Header, body []byte) ([]alert.Alert, error)
}

var (
	_ Source = alertmanager.Source{}
	_ Source = grafana.Source{}
	_ Source = uptimekuma.Source{}
	_ Source = pagerduty.Source{}
	_ Source = templated.Source{}
)

// minSecret is the least length of a secret, in bytes. An empty one would be no secret.
const minSecret = 8

// New returns the source that the settings describe. It reads the file of the secret.
func New(settings alert.Source, now func() time.Time) (Source, error) {
	secret, err := readSecret(settings.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", settings.Name, err)
	}
	switch settings.Kind {
	case alert.Alertmanager:
		return alertmanager.Source{}, nil
	case alert.Grafana:
		return grafana.Source{
			Secret: secret, SignatureHeader: settings.SignatureHeader, TimestampHeader: settings.TimestampHeader,
			Now: now,
		}, nil
	case alert.UptimeKuma:
		return uptimekuma.Source{}, nil
	case alert.PagerDuty:
		return pagerduty.Source{Secret: secret}, nil
	case alert.Templated:
		return templated.Source{Template: *settings.Template}, nil
	}
	return nil, fmt.Errorf("source %s: unknown kind %q", settings.Name, settings.Kind)
}

func readSecret(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("read the secret of its signatures: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < minSecret {
		return nil, fmt.Errorf("the secret in %s has fewer than %d characters", file, minSecret)
	}
	return []byte(secret), nil
}
