// Package alertmanager reads the webhooks of Prometheus Alertmanager, version 4.
package alertmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// version is the version of the format. Alertmanager has sent it since 2015.
const version = "4"

// Message is a delivery. Fields that later versions have added are ignored.
type Message struct {
	Version string  `json:"version"`
	Alerts  []Alert `json:"alerts"`
}

// Alert is an alert of a Message. Grafana sends it, too.
type Alert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// Source reads the deliveries of an Alertmanager. It has no settings: Alertmanager signs nothing.
type Source struct{}

// Decode implements sources.Source. Each alert has a status of its own; that of the group says less.
func (Source) Decode(_ http.Header, body []byte) ([]alert.Alert, error) {
	var message Message
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, errors.New("it is not the JSON of Alertmanager's webhook_configs: leave out custom templates " +
			"and payloads")
	}
	if message.Version != version || message.Alerts == nil {
		return nil, fmt.Errorf("its version is %q, and only %q of Alertmanager's webhook_configs is known: leave out "+
			"custom templates and payloads", plaintext.Cut(plaintext.Line(message.Version), 20), version)
	}
	alerts := make([]alert.Alert, len(message.Alerts))
	for i, one := range message.Alerts {
		alerts[i] = one.Alert()
	}
	return alerts, nil
}

// Alert returns a as an alert of the domain. Its identity is the fingerprint of its labels.
func (a Alert) Alert() alert.Alert {
	converted := alert.Alert{
		Identity: a.Fingerprint, Name: a.Labels["alertname"], Status: alert.Status(a.Status), Labels: a.Labels,
		Annotations: map[string]string{}, StartsAt: a.StartsAt,
	}
	maps.Copy(converted.Annotations, a.Annotations)
	if a.GeneratorURL != "" {
		converted.Annotations["source"] = a.GeneratorURL
	}
	return converted
}
