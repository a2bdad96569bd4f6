// Package stream sends what changes to those who look at it, as server-sent events.
//
//	records, Temporal -> Source -> Hub (one look a second, whatever the number of viewers) -> ring -> viewers
//
// A change is a small notice. A viewer that needs more reads it from the API. Notices have IDs, so that a viewer who
// comes back gets what it has missed; if that is not known any more, it gets a reset, and looks at everything again.
// What a session does now (progress) has no ID: only the latest counts.
package stream
