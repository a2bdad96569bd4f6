// Package pagerduty reads the webhooks of PagerDuty, version 3.
package pagerduty

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation/alert"
)

// signatureHeader has the signatures, separated by commas: several while a secret is replaced.
const signatureHeader = "X-PagerDuty-Signature"

// Source reads the deliveries of a PagerDuty.
type Source struct {
	// Secret is the secret of the subscription's signatures; empty if they are not checked.
	Secret []byte
}

type message struct {
	Event *struct {
		EventType  string    `json:"event_type"`
		OccurredAt time.Time `json:"occurred_at"`
		Data       *struct {
			ID        string    `json:"id"`
			Type      string    `json:"type"`
			Title     string    `json:"title"`
			HTMLURL   string    `json:"html_url"`
			CreatedAt time.Time `json:"created_at"`
			Urgency   string    `json:"urgency"`
			Service   struct {
				Summary string `json:"summary"`
			} `json:"service"`
			Priority *struct {
				Summary string `json:"summary"`
			} `json:"priority"`
		} `json:"data"`
	} `json:"event"`
}

// Decode implements sources.Source. The identity is PagerDuty's incident.
func (s Source) Decode(header http.Header, body []byte) ([]alert.Alert, error) {
	if err := s.verify(header, body); err != nil {
		return nil, err
	}
	var sent message
	if err := json.Unmarshal(body, &sent); err != nil || sent.Event == nil || sent.Event.Data == nil {
		return nil, errors.New("it is not what a webhook of PagerDuty, version 3, sends")
	}
	data := sent.Event.Data
	a := alert.Alert{
		Identity: data.ID, Name: data.Title, Status: alert.Firing, Severity: data.Urgency, StartsAt: data.CreatedAt,
		Labels:      map[string]string{"service": data.Service.Summary, "alertname": data.Title},
		Annotations: map[string]string{"url": data.HTMLURL},
	}
	if data.Priority != nil {
		a.Labels["priority"] = data.Priority.Summary
	}
	switch sent.Event.EventType {
	case "incident.triggered", "incident.escalated", "incident.unacknowledged":
	case "incident.reopened":
		a.StartsAt = sent.Event.OccurredAt
	case "incident.resolved":
		a.Status = alert.Resolved
	case "pagey.ping":
		a.Test, a.Identity, a.Name = true, "message", "message"
	default:
		return nil, nil // such as an acknowledgement or a note
	}
	return []alert.Alert{a}, nil
}

// verify checks that one of the signatures is right, if there is a secret.
func (s Source) verify(header http.Header, body []byte) error {
	if len(s.Secret) == 0 {
		return nil
	}
	mac := hmac.New(sha256.New, s.Secret)
	mac.Write(body)
	want := mac.Sum(nil)
	for _, values := range header.Values(signatureHeader) {
		for signature := range strings.SplitSeq(values, ",") {
			text, found := strings.CutPrefix(strings.TrimSpace(signature), "v1=")
			sent, err := hex.DecodeString(text)
			if found && err == nil && hmac.Equal(sent, want) {
				return nil
			}
		}
	}
	return errors.New("it has no right signature in the header " + signatureHeader)
}
