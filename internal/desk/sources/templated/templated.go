// Package templated reads JSON of any shape, by the paths that the operator gives. It serves Gatus, Healthchecks and
// whatever else sends JSON.
package templated

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation/alert"
)

// Source reads the deliveries that a template describes.
type Source struct{ Template alert.Template }

// Decode implements sources.Source.
func (s Source) Decode(_ http.Header, body []byte) ([]alert.Alert, error) {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber() // an identity must not become 1.7e+09
	var document any
	if err := decoder.Decode(&document); err != nil || decoder.More() {
		return nil, errors.New("it is not one JSON document")
	}
	items := []any{document}
	if s.Template.Items != "" {
		list, ok := at(document, s.Template.Items).([]any)
		if !ok {
			return nil, fmt.Errorf("there is no list at %s", s.Template.Items)
		}
		items = list
	}
	var alerts []alert.Alert
	for i, item := range items {
		a, err := s.alert(item)
		if err != nil {
			return nil, fmt.Errorf("alert %d: %w", i+1, err)
		}
		alerts = append(alerts, a)
	}
	return alerts, nil
}

// alert returns the alert in item.
func (s Source) alert(item any) (alert.Alert, error) {
	t := s.Template
	identity := make([]string, len(t.Identity))
	for i, path := range t.Identity {
		if identity[i] = textAt(item, path); identity[i] == "" {
			return alert.Alert{}, fmt.Errorf("there is nothing at %s, which tells alerts apart", path)
		}
	}
	a := alert.Alert{
		Identity: strings.Join(identity, "/"), Name: textAt(item, t.Name), Status: alert.Firing,
		Severity: textAt(item, t.Severity), Labels: pairs(item, t.Labels), Annotations: pairs(item, t.Annotations),
	}
	if t.Status != "" {
		status := textAt(item, t.Status)
		if status == "" {
			return alert.Alert{}, fmt.Errorf("there is nothing at %s, which is the status", t.Status)
		}
		if slices.ContainsFunc(t.Resolved, func(word string) bool { return strings.EqualFold(word, status) }) {
			a.Status = alert.Resolved
		}
	}
	if t.StartsAt != "" {
		starts, err := timeOf(textAt(item, t.StartsAt))
		if err != nil {
			return alert.Alert{}, fmt.Errorf("what is at %s is no time", t.StartsAt)
		}
		a.StartsAt = starts
	}
	return a, nil
}

// pairs returns the values at paths by their names. An object adds its own fields.
func pairs(item any, paths map[string]string) map[string]string {
	found := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		value := at(item, paths[name])
		if object, ok := value.(map[string]any); ok {
			for key, field := range object {
				found[key] = text(field)
			}
		} else if written := text(value); written != "" {
			found[name] = written
		}
	}
	return found
}

// at returns the value at a path; nil if there is none.
func at(value any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch inside := value.(type) {
		case map[string]any:
			value = inside[step]
		case []any:
			place, err := strconv.Atoi(step)
			if err != nil || place < 0 || place >= len(inside) {
				return nil
			}
			value = inside[place]
		default:
			return nil
		}
	}
	return value
}

func textAt(item any, path string) string {
	if path == "" {
		return ""
	}
	return text(at(item, path))
}

// text returns a value as text; empty for none.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	case json.Number:
		return v.String()
	}
	written, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(written)
}

// lateSeconds is a number of seconds since 1970 that no source sends. A larger number is one of milliseconds.
const lateSeconds = 100_000_000_000

// timeOf reads a time: RFC 3339, or seconds or milliseconds since 1970. An empty text is no time, and no error.
func timeOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		if number > lateSeconds {
			number /= 1_000
		}
		if number < 0 || number > lateSeconds {
			return time.Time{}, errors.New("out of range")
		}
		return time.UnixMilli(int64(number * 1_000)), nil
	}
	return time.Parse(time.RFC3339, text)
}
