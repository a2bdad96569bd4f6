// Package grafana reads the webhooks of Grafana's alerting, version 1.
package grafana

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/desk/sources/alertmanager"
	"github.com/claudeops/claudeops/internal/escalation/alert"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// version is the version of the format.
	version = "1"
	// signatureHeader is Grafana's name of the header with the signature, unless its contact point sets another.
	signatureHeader = "X-Grafana-Alerting-Signature"
	// maxAge limits the age of a signed time, so that nobody sends an old delivery again.
	maxAge = 5 * time.Minute
)

// The alerts that Grafana sends for a rule whose query has no data, or an error. The rule is in the label rulename.
const (
	noData = "DatasourceNoData"
	failed = "DatasourceError"
)

// Source reads the deliveries of a Grafana.
type Source struct {
	// Secret is the secret of the signatures; empty if Grafana does not sign.
	Secret []byte
	// SignatureHeader and TimestampHeader are the headers of the signature and of the time that is signed with the
	// body. An empty SignatureHeader stands for Grafana's own name; with an empty TimestampHeader only the body is
	// signed.
	SignatureHeader, TimestampHeader string
	Now                              func() time.Time
}

type message struct {
	Version string `json:"version"`
	Alerts  []struct {
		alertmanager.Alert

		Values       map[string]any `json:"values"`
		DashboardURL string         `json:"dashboardURL"`
		PanelURL     string         `json:"panelURL"`
	} `json:"alerts"`
}

// Decode implements sources.Source.
func (s Source) Decode(header http.Header, body []byte) ([]alert.Alert, error) {
	if err := s.verify(header, body); err != nil {
		return nil, err
	}
	var sent message
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, errors.New("it is not the JSON of a Grafana webhook: leave out a custom payload")
	}
	if sent.Version != version || sent.Alerts == nil {
		return nil, fmt.Errorf("its version is %q, and only %q of Grafana's webhook is known: leave out a "+
			"custom payload",
			plaintext.Cut(plaintext.Line(sent.Version), 20), version)
	}
	alerts := make([]alert.Alert, len(sent.Alerts))
	for i, one := range sent.Alerts {
		a := one.Alert.Alert()
		if values, err := json.Marshal(one.Values); err == nil && len(one.Values) > 0 {
			a.Annotations["values"] = string(values)
		}
		for name, address := range map[string]string{"dashboard": one.DashboardURL, "panel": one.PanelURL} {
			if address != "" {
				a.Annotations[name] = address
			}
		}
		alerts[i] = ofRule(a)
	}
	return alerts, nil
}

// ofRule gives an alert about missing data the name of its rule. Such an alert takes the place of the rule's own, which
// Grafana then reports as resolved, though nobody knows whether it is (grafana#105571).
func ofRule(a alert.Alert) alert.Alert {
	rule := a.Labels["rulename"]
	if state := a.Labels["alertname"]; (state == noData || state == failed) && rule != "" {
		a.Name = rule + " (" + state + ")"
	}
	if a.Status == alert.Resolved && a.Annotations["grafana_state_reason"] == "NoData" ||
		a.Status == alert.Resolved && a.Annotations["grafana_state_reason"] == "MissingSeries" {
		a.Doubt = "Grafana gives " + a.Annotations["grafana_state_reason"] + " as its reason"
	}
	return a
}

// verify checks the signature, if there is a secret.
func (s Source) verify(header http.Header, body []byte) error {
	if len(s.Secret) == 0 {
		return nil
	}
	name := cmp.Or(s.SignatureHeader, signatureHeader)
	sent, err := hex.DecodeString(header.Get(name))
	if err != nil || len(sent) == 0 {
		return fmt.Errorf("it has no signature in the header %s", name)
	}
	mac := hmac.New(sha256.New, s.Secret)
	if s.TimestampHeader != "" {
		text := header.Get(s.TimestampHeader)
		seconds, err := strconv.ParseInt(text, 10, 64)
		if age := s.Now().Sub(time.Unix(seconds, 0)); err != nil || age.Abs() > maxAge {
			return fmt.Errorf("the time in the header %s is missing, or not within %s", s.TimestampHeader, maxAge)
		}
		mac.Write([]byte(text + ":"))
	}
	mac.Write(body)
	if !hmac.Equal(sent, mac.Sum(nil)) {
		return errors.New("its signature is wrong")
	}
	return nil
}
