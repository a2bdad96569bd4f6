// Package encryption encrypts what Temporal stores of chains: inputs, results, heartbeats, failures and summaries. Workers and
// clients encrypt payloads before they send them, and decrypt what they receive. Temporal never has a key.
//
// The keys are in a file. The first key encrypts, and all keys decrypt, so that a new key leaves older histories readable.
// Payloads that are not encrypted pass through, so that older histories stay readable after encryption was turned on.
package encryption
