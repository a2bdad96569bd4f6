package encryption_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/claudeops/claudeops/internal/records/encryption"
)

// told is a text that Temporal must not see.
const told = "the garage door stands open"

// encode returns told as a payload.
func encode(t *testing.T, keys *encryption.Keys) *commonpb.Payload {
	t.Helper()
	payload, err := encryption.NewConverter(keys).ToPayload(map[string]string{"text": told})
	require.NoError(t, err)
	return payload
}

// decode returns the text of a payload.
func decode(payload *commonpb.Payload, keys *encryption.Keys) (string, error) {
	var value map[string]string
	err := encryption.NewConverter(keys).FromPayload(payload, &value)
	return value["text"], err
}

func TestEncryptedPayload(t *testing.T) {
	t.Parallel()
	keys := readKeys(t, keyOf("new", 'a'), keyOf("old", 'b'))
	payload := encode(t, keys)
	require.Equal(t, "binary/encrypted", string(payload.GetMetadata()["encoding"]))
	require.Equal(t, "new", string(payload.GetMetadata()["encryption-key-id"]))
	wire, err := proto.Marshal(payload)
	require.NoError(t, err)
	require.NotContains(t, string(wire), told)
	require.NotContains(t, string(wire), "json", "the form of what is encrypted is a secret, too")
	text, err := decode(payload, keys)
	require.NoError(t, err)
	require.Equal(t, told, text)

	require.NotEqual(t, payload.GetData(), encode(t, keys).GetData(), "each payload has a nonce of its own")
	twice, err := encryption.NewCodec(keys).Encode([]*commonpb.Payload{payload})
	require.NoError(t, err)
	require.True(t, proto.Equal(payload, twice[0]), "it is encrypted once")
}

// TestPlainAndEncryptedSideBySide turns encryption on, rotates the key, and reads the payloads that were written
// before.
func TestPlainAndEncryptedSideBySide(t *testing.T) {
	t.Parallel()
	plain := encode(t, nil)
	require.Equal(t, "json/plain", string(plain.GetMetadata()["encoding"]))
	old := encode(t, readKeys(t, keyOf("old", 'b')))
	rotated := readKeys(t, keyOf("new", 'a'), keyOf("old", 'b'))
	for _, payload := range []*commonpb.Payload{plain, old, encode(t, rotated)} {
		text, err := decode(payload, rotated)
		require.NoError(t, err)
		require.Equal(t, told, text)
	}
	require.Equal(t, "new", string(encode(t, rotated).GetMetadata()["encryption-key-id"]))
}

func TestMissingOrWrongKey(t *testing.T) {
	t.Parallel()
	payload := encode(t, readKeys(t, keyOf("new", 'a')))
	_, err := decode(payload, nil)
	require.ErrorIs(t, err, encryption.ErrKey)
	require.EqualError(t, err, `cannot decrypt what Temporal has stored: it is encrypted with key "new"; `+
		`set CLAUDEOPS_ENCRYPTION_KEYS_FILE to a file with that key`)

	file := writeKeys(t, keyOf("other", 'b'))
	other, err := encryption.ReadKeys(file)
	require.NoError(t, err)
	_, err = decode(payload, other)
	require.ErrorIs(t, err, encryption.ErrKey)
	require.EqualError(t, err, `cannot decrypt what Temporal has stored: it is encrypted with key "new", which is not in `+file+
		`; add that key there`)

	const changed = `key "new" is not the one that it was encrypted with, or it was changed since`
	_, err = decode(payload, readKeys(t, keyOf("new", 'z')))
	require.ErrorIs(t, err, encryption.ErrKey)
	require.ErrorContains(t, err, changed)

	keys := readKeys(t, keyOf("new", 'a'), keyOf("same", 'b'))
	for name, spoil := range map[string]func(*commonpb.Payload){
		"changed":   func(p *commonpb.Payload) { p.Data[len(p.Data)-1] ^= 1 },
		"cut":       func(p *commonpb.Payload) { p.Data = p.Data[:20] },
		"too short": func(p *commonpb.Payload) { p.Data = p.Data[:3] },
	} {
		spoiled := proto.CloneOf(payload)
		spoil(spoiled)
		_, err = decode(spoiled, keys)
		require.ErrorContains(t, err, changed, name)
	}
}

// TestWorkflowsWaitForTheKey checks that a workflow panics without the key. The panic fails only the workflow task,
// while an error would end the workflow. Other mistakes stay errors.
func TestWorkflowsWaitForTheKey(t *testing.T) {
	t.Parallel()
	payload := encode(t, readKeys(t, keyOf("new", 'a')))
	aware, ok := encryption.NewConverter(nil).(converter.ContextAware)
	require.True(t, ok)
	inWorkflow := aware.WithWorkflowContext(nil)
	var value map[string]string
	require.PanicsWithValue(t, `cannot decrypt what Temporal has stored: it is encrypted with key "new"; `+
		`set CLAUDEOPS_ENCRYPTION_KEYS_FILE to a file with that key`, func() { _ = inWorkflow.FromPayload(payload, &value) })
	require.Panics(t, func() {
		_ = inWorkflow.FromPayloads(&commonpb.Payloads{Payloads: []*commonpb.Payload{payload}}, &value)
	})
	var number int
	require.Error(t, inWorkflow.FromPayload(encode(t, nil), &number))
}

func TestFailures(t *testing.T) {
	t.Parallel()
	keys := readKeys(t, keyOf("new", 'a'))
	shorten := func(failure *failurepb.Failure) { failure.Message = "edited: " + failure.GetMessage() }
	converters := encryption.NewFailureConverter(keys, shorten)
	failure := converters.ErrorToFailure(temporal.NewApplicationErrorWithOptions(told, "AgentError", temporal.ApplicationErrorOptions{
		Cause: errors.New("because " + told), Details: []any{told},
	}))
	wire, err := proto.Marshal(failure)
	require.NoError(t, err)
	require.NotContains(t, string(wire), told)
	require.Equal(t, "AgentError", failure.GetApplicationFailureInfo().GetType(), "types are not secret: retry policies need them")
	require.Equal(t, "edited: "+told, encryption.FailureMessage(encryption.NewConverter(keys), failure))
	require.Equal(t, "Encoded failure", encryption.FailureMessage(encryption.NewConverter(nil), failure))

	decoded := converters.FailureToError(proto.CloneOf(failure))
	require.ErrorContains(t, decoded, "edited: "+told)
	require.ErrorContains(t, errors.Unwrap(decoded), "edited: because "+told)
	var detail string
	application, ok := errors.AsType[*temporal.ApplicationError](decoded)
	require.True(t, ok)
	require.NoError(t, application.Details(&detail))
	require.Equal(t, told, detail)
	require.True(t, proto.Equal(failure, converters.ErrorToFailure(decoded)), "what is passed on stays as it was")

	plain := encryption.NewFailureConverter(nil, shorten).ErrorToFailure(errors.New(told))
	require.Equal(t, "edited: "+told, plain.GetMessage())
	require.ErrorContains(t, converters.FailureToError(plain), told, "what was written before encryption is readable")
}
