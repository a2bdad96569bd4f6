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

// MaskedHint tells people that their input contained a secret, and how agents can get credentials.
const MaskedHint = "starter: what you gave holds a secret. It was masked before it was sent, because histories keep what is sent; " +
	"agents get credentials by CLAUDEOPS_PASS_ENV\n"

// masking masks secrets in payloads. It masks outgoing payloads, so that no history contains a secret. It also masks
// incoming payloads, because another client may have sent a secret.
type masking struct {
	mask *redact.Redactor
	// masked is called when the user's own input was masked.
	masked func()
}

var _ converter.PayloadCodec = (*masking)(nil)

// masking returns the codec, which is created on the first call. It prints MaskedHint when it masks the person's
// input for the first time.
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

// MaskText returns given with its secrets masked. Use it for texts that do not travel as payloads.
func (c *Console) MaskText(given string) string {
	m := c.masking()
	clean := m.mask.Text(given)
	if clean != given {
		m.masked()
	}
	return clean
}

// Masked returns a text of the records with its secrets masked. Unlike MaskText it prints no hint, because somebody else has
// written the text.
func (c *Console) Masked(text string) string { return c.masking().mask.Text(text) }

// apply masks the JSON in payloads. It returns the payloads, and whether anything was masked.
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
