package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

const (
	// keyBytes is the length of a key of AES-256.
	keyBytes = 32
	// maxKeysFile limits the size of a file of keys, in bytes.
	maxKeysFile = 1 << 20
)

// idPattern matches the ID of a key. Every encrypted payload contains the ID as plain text.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Keys holds the keys of a file. The first key is the current one. A nil *Keys encrypts nothing. Formatting Keys as
// text shows no key.
type Keys struct {
	file    string
	ordered []key
}

// key is one key with its ID.
type key struct {
	id   string
	aead cipher.AEAD
	// encoded is the text of the key in the file.
	encoded string
}

// ReadKeys reads a file of keys. Each line has an ID, blanks, and a key of 32 bytes in base64. Empty lines and lines
// that begin with # are ignored. An error completes a sentence that begins with the name of the file, and contains no
// key.
func ReadKeys(name string) (*Keys, error) {
	file, err := os.Open(name) //nolint:gosec // the operator's own file
	if err != nil {
		return nil, plainPathError(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, plainPathError(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("is no file")
	case info.Mode().Perm()&0o027 != 0:
		return nil, fmt.Errorf("has the mode %04o, with which others can read or change it; do: chmod 0600",
			info.Mode().Perm())
	case info.Size() > maxKeysFile:
		return nil, fmt.Errorf("has more than %d bytes", maxKeysFile)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxKeysFile))
	if err != nil {
		return nil, plainPathError(err)
	}
	return parseKeys(name, string(content))
}

// plainPathError removes the path from an error, because the caller's message already names the file.
func plainPathError(err error) error {
	if failure, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("cannot be read: %w", failure.Err)
	}
	return err
}

// parseKeys parses the content of a file of keys. It stores name in the result as the name of the file.
func parseKeys(name, content string) (*Keys, error) {
	keys := &Keys{file: name}
	number := 0
	for line := range strings.Lines(content) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		next, err := parseKey(fields)
		if err == nil {
			err = keys.checkNew(next)
		}
		if err != nil {
			return nil, fmt.Errorf("has a mistake in line %d: %w", number, err)
		}
		keys.ordered = append(keys.ordered, next)
	}
	if len(keys.ordered) == 0 {
		return nil, errors.New("has no key: write a line with an ID, a blank and 32 random bytes as base64")
	}
	return keys, nil
}

// parseKey parses the fields of a line.
func parseKey(fields []string) (key, error) {
	if len(fields) != 2 {
		return key{}, errors.New("write an ID, a blank and the key")
	}
	if !idPattern.MatchString(fields[0]) {
		return key{}, errors.New("an ID has up to 64 letters, digits, dots, dashes and underscores")
	}
	secret, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || len(secret) != keyBytes {
		return key{}, fmt.Errorf("the key %s is not the base64 of %d bytes", fields[0], keyBytes)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCM(block)
	return key{id: fields[0], aead: aead, encoded: fields[1]}, err
}

// checkNew returns an error if the ID or the key is already used.
func (k *Keys) checkNew(next key) error {
	for _, known := range k.ordered {
		if known.id == next.id {
			return fmt.Errorf("the ID %s comes twice", next.id)
		}
		if known.encoded == next.encoded {
			return fmt.Errorf("the keys %s and %s are the same", known.id, next.id)
		}
	}
	return nil
}

// find returns the key with an ID.
func (k *Keys) find(id string) (key, bool) {
	if k == nil {
		return key{}, false
	}
	at := slices.IndexFunc(k.ordered, func(known key) bool { return known.id == id })
	if at < 0 {
		return key{}, false
	}
	return k.ordered[at], true
}

// Current returns the ID of the key that encrypts; "" if there is none.
func (k *Keys) Current() string {
	if k == nil {
		return ""
	}
	return k.ordered[0].id
}

// IDs returns the IDs of all keys in the order of the file.
func (k *Keys) IDs() []string {
	var ids []string
	if k != nil {
		for _, known := range k.ordered {
			ids = append(ids, known.id)
		}
	}
	return ids
}

// Secrets returns the texts of the keys in the file. Use these texts only to mask them.
func (k *Keys) Secrets() []string {
	var secrets []string
	if k != nil {
		for _, known := range k.ordered {
			secrets = append(secrets, known.encoded)
		}
	}
	return secrets
}

// String returns the IDs of the keys.
func (k *Keys) String() string { return "keys " + strings.Join(k.IDs(), ", ") }

// GoString implements fmt.GoStringer without the keys.
func (k *Keys) GoString() string { return k.String() }

// Format implements fmt.Formatter, so that no verb shows a key.
func (k *Keys) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, k.String()) }

// MarshalText implements encoding.TextMarshaler. The text contains no key.
func (k *Keys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
