package main

import (
	"bytes"
	"io"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/redact"
)

// maskedHint says what to do instead of giving a secret.
const maskedHint = "starter: what you gave holds a secret. It was masked before it was sent, because histories keep what is sent; " +
	"agents get credentials by CLAUDEOPS_PASS_ENV\n"

// masking masks secrets in what the program sends to chains, before it enters a history, and in what it gets to
// show. Others may have sent what it shows.
type masking struct {
	mask *redact.Redactor
	// masked is called once, when something that a person gave was masked.
	masked func()
}

var _ converter.PayloadCodec = (*masking)(nil)

// masking returns a codec that tells the person if what they gave is not sent as they gave it.
func (a *app) masking() *masking {
	tell := func() { _, _ = io.WriteString(a.stderr, maskedHint) }
	if a.masks == nil {
		a.masks = &masking{mask: redact.New(a.environ), masked: sync.OnceFunc(tell)}
	}
	return a.masks
}

// Encode implements converter.PayloadCodec.
func (m *masking) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	sent, changed := m.apply(payloads)
	if changed {
		m.masked()
	}
	return sent, nil
}

// Decode implements converter.PayloadCodec.
func (m *masking) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	shown, _ := m.apply(payloads)
	return shown, nil
}

// text returns a text that a person gave as it may be sent.
func (m *masking) text(given string) string {
	clean := m.mask.Text(given)
	if clean != given {
		m.masked()
	}
	return clean
}

// apply returns payloads with masked JSON, and whether anything was masked.
func (m *masking) apply(payloads []*commonpb.Payload) (masked []*commonpb.Payload, changed bool) {
	for _, payload := range payloads {
		if string(payload.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingJSON {
			if data := m.mask.JSON(payload.GetData()); !bytes.Equal(data, payload.GetData()) {
				payload, changed = proto.CloneOf(payload), true
				payload.Data = data
			}
		}
		masked = append(masked, payload)
	}
	return masked, changed
}
