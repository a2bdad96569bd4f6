// Package encryption encrypts the data of chains that Temporal stores: inputs, results, heartbeats, failures and
// summaries. Workers and clients encrypt payloads before they send them, and decrypt the payloads that they receive.
// Temporal never has a key.
//
// A file holds the keys. The first key encrypts, and all keys decrypt, so that older histories stay readable after a
// change of the first key. Unencrypted payloads pass through, so that older histories stay readable after encryption
// was turned on.
package encryption
