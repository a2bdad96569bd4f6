package workflows

import "go.temporal.io/sdk/workflow"

// receiveSignals takes in all signals that have arrived on a channel, and never blocks. It calls unreadable for each whose
// payload cannot be decoded: one without a payload, or one that is not JSON. The SDK drops those without a trace.
func receiveSignals[T any](channel workflow.ReceiveChannel, take func(T), unreadable func()) {
	for channel.Len() > 0 {
		before := channel.Len()
		var payload T
		read := channel.ReceiveAsync(&payload)
		dropped := before - channel.Len()
		if read {
			dropped--
		}
		for range dropped {
			unreadable()
		}
		if read {
			take(payload)
		}
	}
}
