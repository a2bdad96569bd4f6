package claudesim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// fingerprint returns a key for the content of r. Requests with the same content have the same key.
func (r Request) fingerprint() string {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	_ = encoder.Encode(r.Model) // writing to a hash cannot fail, and these values always encode
	_ = encoder.Encode(r.Messages)
	return hex.EncodeToString(hash.Sum(nil)[:9])
}
