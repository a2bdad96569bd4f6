package encryption

import (
	"crypto/rand"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// Encoding is the value of the metadata field "encoding" of encrypted payloads.
const Encoding = "binary/encrypted"

const (
	// metadataKeyID is the name of the key's ID in a payload's metadata. Temporal's examples use the same name.
	metadataKeyID = "encryption-key-id"
	// metadataCipher is the name of the cipher in a payload's metadata. It is for people; no code reads it.
	metadataCipher = "encryption-cipher"
	cipherName     = "AES-256-GCM"
	// dataPrefix is the beginning of the additional data, which is authenticated but not encrypted. The key's ID is the
	// end of this data.
	dataPrefix = "claudeops/payload/1/"
)

// ErrKey means that the key of a payload is missing or wrong.
var ErrKey = errors.New("cannot decrypt what Temporal has stored")

// Codec encrypts and decrypts payloads with AES-256-GCM. Each payload gets a random nonce of 96 bits, which is stored
// before the ciphertext. The ID of the key is authenticated.
type Codec struct{ keys *Keys }

var _ converter.PayloadCodec = Codec{}

// NewCodec returns a codec. If keys is nil, the codec encrypts nothing, and cannot decode encrypted payloads.
func NewCodec(keys *Keys) Codec { return Codec{keys} }

// Encode implements converter.PayloadCodec. It returns encrypted payloads unchanged.
func (c Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if c.keys == nil {
		return payloads, nil
	}
	encoded := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		var err error
		if encoded[i], err = c.keys.ordered[0].seal(payload); err != nil {
			return nil, err
		}
	}
	return encoded, nil
}

// Decode implements converter.PayloadCodec. It returns unencrypted payloads unchanged. Its errors wrap ErrKey.
func (c Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decoded := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		var err error
		if decoded[i], err = c.decode(payload); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

func (c Codec) decode(payload *commonpb.Payload) (*commonpb.Payload, error) {
	if !isEncrypted(payload) {
		return payload, nil
	}
	id := string(payload.GetMetadata()[metadataKeyID])
	own, found := c.keys.find(id)
	switch {
	case found:
		return own.open(payload)
	case c.keys == nil:
		return nil, fmt.Errorf("%w: it is encrypted with key %q; set CLAUDEOPS_ENCRYPTION_KEYS_FILE to a file with "+
			"that key", ErrKey, id)
	default:
		return nil, fmt.Errorf("%w: it is encrypted with key %q, which is not in %s; add that key there", ErrKey, id,
			c.keys.file)
	}
}

func isEncrypted(payload *commonpb.Payload) bool {
	return string(payload.GetMetadata()[converter.MetadataEncoding]) == Encoding
}

// seal encrypts a payload with its metadata.
func (k key) seal(payload *commonpb.Payload) (*commonpb.Payload, error) {
	if isEncrypted(payload) {
		return payload, nil
	}
	plain, err := proto.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encrypt a payload: %w", err)
	}
	nonce := make([]byte, k.aead.NonceSize(), k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	_, _ = rand.Read(nonce) // it never fails
	return &commonpb.Payload{
		Metadata: map[string][]byte{
			converter.MetadataEncoding: []byte(Encoding), metadataKeyID: []byte(k.id),
			metadataCipher: []byte(cipherName),
		},
		Data: k.aead.Seal(nonce, nonce, plain, []byte(dataPrefix+k.id)),
	}, nil
}

// open decrypts a payload that seal has returned.
func (k key) open(payload *commonpb.Payload) (*commonpb.Payload, error) {
	data, size := payload.GetData(), k.aead.NonceSize()
	var plain []byte
	err := errors.New("too short")
	if len(data) >= size {
		plain, err = k.aead.Open(nil, data[:size], data[size:], []byte(dataPrefix+k.id))
	}
	opened := &commonpb.Payload{}
	if err == nil {
		err = proto.Unmarshal(plain, opened)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: key %q is not the one that it was encrypted with, or it was changed since; "+
			"give the key file the original key of that ID", ErrKey, k.id)
	}
	return opened, nil
}
