package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// Attr masks secrets in an attribute of a log line. Use it as slog.HandlerOptions.ReplaceAttr. It also masks the
// message of the line, because package slog passes the message as an attribute, too.
func (r *Redactor) Attr(_ []string, attr slog.Attr) slog.Attr {
	var text string
	switch attr.Value.Kind() {
	case slog.KindString:
		text = attr.Value.String()
	case slog.KindAny:
		text = textOf(attr.Value.Any())
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindInt64, slog.KindUint64, slog.KindTime,
		slog.KindGroup, slog.KindLogValuer: // contain no text, or are passed to Attr in parts
		return attr
	}
	clean := r.Text(text)
	if isSecretName(attr.Key) {
		clean = r.maskField(text)
	}
	if clean == text {
		return attr
	}
	return slog.String(attr.Key, clean)
}

// textOf returns the text that a handler of package slog would print for v, approximately.
func textOf(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case json.RawMessage:
		return string(v)
	default:
		return fmt.Sprint(v)
	}
}

// Error returns err if its text contains no secret. Otherwise it returns a new error that consists of the masked text.
func (r *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := r.Text(text); clean != text {
		return errors.New(clean)
	}
	return err
}
