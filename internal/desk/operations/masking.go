package operations

import (
	"bytes"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/redact"
)

// masking masks secrets in payloads. It masks outgoing payloads, so that no history contains a secret. It also masks
// incoming payloads, because another client can have sent a secret.
type masking struct {
	mask *redact.Redactor
	// masked is called when an outgoing payload was masked.
	masked func()
}

var _ converter.PayloadCodec = (*masking)(nil)

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
