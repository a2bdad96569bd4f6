package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// Limits on the parts of an alert. What is longer is cut, because an alert is data that others write.
const (
	maxPairs      = 50    // labels, and annotations
	maxKey        = 100   // characters
	maxLabel      = 300   // characters of a label's value
	maxAnnotation = 1_000 // characters
	maxIdentity   = 300   // characters
)

// maxAhead is how far an alert's start can be in the future. A later one counts as none: it would make all later alerts
// old.
const maxAhead = time.Hour

// Status is the status of an alert, as its source says.
type Status string

// The statuses.
const (
	Firing   Status = "firing"
	Resolved Status = "resolved"
)

// Alert is one alert of a delivery.
type Alert struct {
	// Source is the name of the source in the services file.
	Source string `json:"source"`
	// Identity tells the alerts of a source apart, such as the fingerprint of the labels.
	Identity    string            `json:"identity"`
	Name        string            `json:"name"` // what people call it
	Status      Status            `json:"status"`
	Severity    string            `json:"severity,omitempty"` // in the words of the source, in lower case
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// StartsAt is the time at which the alert began; zero if the source does not send it.
	StartsAt time.Time `json:"starts_at,omitzero"`
	// Test reports that the source only tests its connection.
	Test bool `json:"test,omitempty"`
	// Doubt says why a "resolved" of this alert means nothing; empty if it may mean something.
	Doubt string `json:"doubt,omitempty"`
}

// Bounded returns a with bounded texts of one line each. An alert without an identity gets one from its labels, and one
// without a severity that of the label severity or priority.
func (a Alert) Bounded(now time.Time) Alert {
	a.Labels, a.Annotations = bounded(a.Labels, maxLabel), bounded(a.Annotations, maxAnnotation)
	a.Identity = plaintext.Line(a.Identity)
	if a.Identity == "" || len([]rune(a.Identity)) > maxIdentity {
		a.Identity = digest(a.Identity, a.Name, a.Labels)
	}
	a.Name = plaintext.Cut(plaintext.Compact(first(a.Name, a.Labels["alertname"], a.Identity)), maxLabel)
	a.Severity = strings.ToLower(plaintext.Cut(plaintext.Compact(
		first(a.Severity, a.Labels["severity"], a.Labels["priority"])), maxKey))
	if a.Status != Resolved {
		a.Status = Firing
	}
	a.StartsAt = a.StartsAt.UTC().Truncate(time.Millisecond)
	if a.StartsAt.Unix() <= 0 || a.StartsAt.After(now.Add(maxAhead)) {
		a.StartsAt = time.Time{}
	}
	return a
}

// bounded returns the first pairs by key. Their keys and values are single lines.
func bounded(pairs map[string]string, longest int) map[string]string {
	kept := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		if len(kept) == maxPairs {
			break
		}
		if name := plaintext.Cut(plaintext.Compact(key), maxKey); name != "" {
			kept[name] = plaintext.Cut(plaintext.Line(strings.TrimSpace(pairs[key])), longest)
		}
	}
	return kept
}

func digest(parts ...any) string {
	data, err := json.Marshal(parts) // with sorted keys
	if err != nil {
		panic("alert: strings are valid JSON: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func first(texts ...string) string {
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}
