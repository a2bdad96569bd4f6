// Package uptimekuma reads the webhooks of Uptime Kuma.
package uptimekuma

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"

	"github.com/claudeops/claudeops/internal/escalation/alert"
)

// The statuses of a heartbeat.
const (
	down        = 0
	up          = 1
	pending     = 2
	maintenance = 3
)

// Source reads the deliveries of an Uptime Kuma, as JSON or as form data.
type Source struct{}

type message struct {
	Heartbeat *struct {
		Status int    `json:"status"`
		Msg    string `json:"msg"`
	} `json:"heartbeat"`
	Monitor *struct {
		ID       json.Number `json:"id"`
		Name     string      `json:"name"`
		Type     string      `json:"type"`
		URL      string      `json:"url"`
		Hostname string      `json:"hostname"`
	} `json:"monitor"`
	Msg *string `json:"msg"`
}

var errUnknown = errors.New("it is not what Uptime Kuma's webhook sends: choose application/json or form data, and " +
	"no custom body")

// Decode implements sources.Source. Uptime Kuma sends no start, so an episode begins with the first delivery.
func (Source) Decode(header http.Header, body []byte) ([]alert.Alert, error) {
	text, err := jsonOf(header, body)
	if err != nil {
		return nil, err
	}
	var sent message
	if err := json.Unmarshal(text, &sent); err != nil || sent.Msg == nil {
		return nil, errUnknown
	}
	if sent.Heartbeat == nil || sent.Monitor == nil {
		return []alert.Alert{{
			Identity: "message", Name: "message", Status: alert.Firing, Test: true,
			Annotations: map[string]string{"message": *sent.Msg},
		}}, nil
	}
	a := alert.Alert{
		Identity: sent.Monitor.ID.String(), Name: sent.Monitor.Name,
		Labels:      map[string]string{"monitor": sent.Monitor.Name, "type": sent.Monitor.Type},
		Annotations: map[string]string{"message": *sent.Msg, "heartbeat": sent.Heartbeat.Msg},
	}
	for name, value := range map[string]string{"url": sent.Monitor.URL, "hostname": sent.Monitor.Hostname} {
		if value != "" {
			a.Annotations[name] = value
		}
	}
	switch sent.Heartbeat.Status {
	case down:
		a.Status = alert.Firing
	case up:
		a.Status = alert.Resolved
	case maintenance, pending:
		return nil, nil
	default:
		return nil, errors.New("the status of its heartbeat is " + strconv.Itoa(sent.Heartbeat.Status) +
			", and only 0 to 3 are known")
	}
	return []alert.Alert{a}, nil
}

// jsonOf returns the JSON of a delivery. As form data, it is in the field data.
func jsonOf(header http.Header, body []byte) ([]byte, error) {
	kind, parameters, _ := mime.ParseMediaType(header.Get("Content-Type")) // without one it is JSON
	switch kind {
	case "multipart/form-data":
		form := multipart.NewReader(bytes.NewReader(body), parameters["boundary"])
		for {
			part, err := form.NextPart()
			if err != nil {
				return nil, errUnknown
			}
			if part.FormName() == "data" {
				return io.ReadAll(part) // it is no longer than the body
			}
		}
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil || !form.Has("data") {
			return nil, errUnknown
		}
		return []byte(form.Get("data")), nil
	default:
		return body, nil
	}
}
