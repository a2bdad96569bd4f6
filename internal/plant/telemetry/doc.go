// Package telemetry lets people and programs watch a worker from outside. It has the metrics and health checks that the
// worker serves over HTTP, the attributes of log lines about a session, and the traces that the worker sends to an OTLP
// receiver.
//
// All of it is off by default. A nil *Telemetry and a nil *Metrics are valid: their methods do nothing.
package telemetry
