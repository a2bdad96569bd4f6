package console

import (
	"bytes"
	"io"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/redact"
)

// MaskedHint tells people that their input contained a secret, and how agents get credentials instead.
const MaskedHint = "starter: what you gave holds a secret. It was masked before it was sent, because histories keep what is sent; " +
	"agents get credentials by CLAUDEOPS_PASS_ENV\n"

// masking masks secrets in payloads. It masks outgoing payloads, so that no history contains a secret. It also masks
// incoming payloads, because another client can have sent a secret.
type masking struct {
	mask *redact.Redactor
	// masked is called when the user's own input was masked.
	masked func()
}

var _ converter.PayloadCodec = (*masking)(nil)

// masking returns the masking of this command, and creates it on the first call. When a secret in the person's own
// input is first masked, the returned masking prints MaskedHint.
func (c *Console) masking() *masking {
	tell := func() { _, _ = io.WriteString(c.Stderr, MaskedHint) }
	if c.masks == nil {
		c.masks = &masking{mask: redact.New(c.Environ), masked: sync.OnceFunc(tell)}
	}
	return c.masks
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

// MaskText returns a text from the person with its secrets masked. Use it for text that is not sent as a payload.
func (c *Console) MaskText(given string) string {
	m := c.masking()
	clean := m.mask.Text(given)
	if clean != given {
		m.masked()
	}
	return clean
}

// Masked returns text from the records with its secrets masked. Masked prints no hint, because the text does not come
// from the person who runs the command.
func (c *Console) Masked(text string) string { return c.masking().mask.Text(text) }

// apply masks the JSON in payloads. It returns the payloads, and reports whether it has masked anything.
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
