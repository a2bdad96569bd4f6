package encryption

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
)

// NewConverter returns the data converter for clients and workers. If keys is not nil, the converter encrypts with the
// first key. The inner codecs process the payloads before encryption and after decryption.
func NewConverter(keys *Keys, inner ...converter.PayloadCodec) converter.DataConverter {
	codecs := append([]converter.PayloadCodec{NewCodec(keys)}, inner...)
	return dataConverter{converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), codecs...)}
}

// dataConverter is a data converter that blocks a workflow while no worker has the key.
type dataConverter struct{ converter.DataConverter }

var _ converter.ContextAware = dataConverter{}

// WithWorkflowContext implements converter.ContextAware.
func (d dataConverter) WithWorkflowContext(converter.WorkflowContext) converter.DataConverter {
	return workflowConverter(d)
}

// WithContext implements converter.ContextAware.
func (d dataConverter) WithContext(context.Context) converter.DataConverter { return d }

// workflowConverter panics if a payload of a workflow cannot be decrypted. An error would end the workflow. The panic
// fails only the workflow task, so that the workflow continues as soon as a worker has the key.
type workflowConverter struct{ converter.DataConverter }

// FromPayload implements converter.DataConverter.
func (w workflowConverter) FromPayload(payload *commonpb.Payload, value any) error {
	return requireKey(w.DataConverter.FromPayload(payload, value))
}

// FromPayloads implements converter.DataConverter.
func (w workflowConverter) FromPayloads(payloads *commonpb.Payloads, values ...any) error {
	return requireKey(w.DataConverter.FromPayloads(payloads, values...))
}

func requireKey(err error) error {
	if errors.Is(err, ErrKey) {
		panic(err.Error())
	}
	return err
}

// failureConverter encrypts the messages and stack traces of failures.
type failureConverter struct {
	converter.FailureConverter
	data    converter.DataConverter
	encrypt bool
	// edit changes a failure before it is encrypted.
	edit func(failure *failurepb.Failure)
}

// NewFailureConverter returns a failure converter for use together with NewConverter. It calls edit for each failure,
// and for each cause of a failure, before it encrypts or sends the failure. It does not call edit for an encrypted
// failure.
func NewFailureConverter(keys *Keys, edit func(failure *failurepb.Failure)) converter.FailureConverter {
	data := NewConverter(keys)
	plain := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: data})
	return failureConverter{plain, data, keys != nil, edit}
}

// ErrorToFailure implements converter.FailureConverter.
func (f failureConverter) ErrorToFailure(err error) *failurepb.Failure {
	failure := f.FailureConverter.ErrorToFailure(err)
	if failure == nil {
		return nil
	}
	changed := proto.CloneOf(failure) // if err was decoded, failure is the decoded one, which must not change
	for part := changed; part != nil; part = part.GetCause() {
		if part.GetEncodedAttributes() != nil {
			continue
		}
		f.edit(part)
		if !f.encrypt {
			continue
		}
		if err := converter.EncodeCommonFailureAttributes(f.data, part); err != nil {
			part.Message, part.StackTrace = "the failure could not be encrypted", "" // it must not be sent in clear
		}
	}
	return changed
}

// FailureMessage returns the message of a failure. If the failure cannot be decrypted, FailureMessage returns the
// placeholder that replaces the message.
func FailureMessage(data converter.DataConverter, failure *failurepb.Failure) string {
	if failure.GetEncodedAttributes() == nil {
		return failure.GetMessage()
	}
	shown := proto.CloneOf(failure)
	converter.DecodeCommonFailureAttributes(data, shown)
	return shown.GetMessage()
}
