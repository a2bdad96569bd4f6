package parts

import "go.temporal.io/sdk/workflow"

// ReceiveSignals calls the function take with the payload of each signal that has arrived on a channel. It never
// blocks. The SDK would silently drop a signal that has no payload, or whose payload is not JSON. For each such
// signal, ReceiveSignals calls the function unreadable.
func ReceiveSignals[T any](channel workflow.ReceiveChannel, take func(T), unreadable func()) {
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
