package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/filelock"
	"github.com/claudeops/claudeops/internal/plaintext"
)

const (
	// tokenPrefix is the beginning of every token, by which masking finds a token in text.
	tokenPrefix = "claudeops-token-"
	// tokenBytes is the length of a token in bytes, before its encoding as hexadecimal text. Nobody can guess so many,
	// so a plain hash of a token is enough.
	tokenBytes = 32
	// maxName limits the name of a token, in characters. A gate accepts no longer name.
	maxName = 200
)

// Token describes a token. It does not contain the token itself.
type Token struct {
	// Name is the name of the person or program that has the token. It goes into the records.
	Name  string `json:"name"`
	Roles []Role `json:"roles"`
	// Hash is the SHA-256 of the token, as hexadecimal text.
	Hash      string    `json:"hash"`
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt is the time from which the token is not valid; zero if it has no end.
	ExpiresAt time.Time `json:"expires_at,omitzero"`

	// owner reports that this is the token of a `claudeops up`.
	owner bool
}

// Person returns the person who has the token.
func (t Token) Person() Person { return Person{Name: t.Name, Roles: t.Roles, owner: t.owner} }

// valid reports whether the token has not expired.
func (t Token) valid(now time.Time) bool { return t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt) }

// check returns an error if the token cannot be used.
func (t Token) check() error {
	known := func(role Role) bool { return slices.Contains(Roles(), role) }
	switch {
	case t.Name == "" || !plaintext.IsLine(t.Name) || len([]rune(t.Name)) > maxName:
		return fmt.Errorf("a token needs a plain name of at most %d characters", maxName)
	case len(t.Roles) == 0 || slices.ContainsFunc(t.Roles, func(role Role) bool { return !known(role) }):
		return fmt.Errorf("token %s needs roles, and these are %s", t.Name, plaintext.Or(roleNames()))
	case len(t.Hash) != hex.EncodedLen(sha256.Size):
		return fmt.Errorf("token %s has no hash", t.Name)
	}
	return nil
}

func roleNames() []string {
	var names []string
	for _, role := range Roles() {
		names = append(names, string(role))
	}
	return names
}

// newSecret returns a new token.
func newSecret() string {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // it never fails
	return tokenPrefix + hex.EncodeToString(secret)
}

// hashOf returns the hash of a token as it is stored.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

var (
	// ErrTokenInvalid is wrapped by the error of a token that cannot be created.
	ErrTokenInvalid = errors.New("it is no token")
	// ErrTokenExists is the error if a token with the name exists already.
	ErrTokenExists = errors.New("a token with this name exists already; choose another name, or revoke that token " +
		"first")
	// ErrNoToken is the error if no token has the name.
	ErrNoToken = errors.New("no token has this name; `claudeops web token list` shows those that are")
)

// invalidTokenError wraps ErrTokenInvalid, and says what is wrong.
type invalidTokenError struct{ problem error }

func (e *invalidTokenError) Error() string   { return e.problem.Error() }
func (e *invalidTokenError) Unwrap() []error { return []error{ErrTokenInvalid, e.problem} }

// TokenFile is a file with the hashes of tokens. A change of the file counts without a restart.
type TokenFile struct {
	name string

	mutex  sync.Mutex
	seen   stamp
	tokens []Token
	err    error
}

// stamp tells two states of a file apart.
type stamp struct {
	changed time.Time
	size    int64
	inode   fs.FileInfo
}

func (s stamp) is(other stamp) bool {
	same := s.inode != nil && other.inode != nil && os.SameFile(s.inode, other.inode)
	return same && s.changed.Equal(other.changed) && s.size == other.size
}

// OpenTokens returns the file of tokens with this name. A missing file holds no tokens.
func OpenTokens(name string) *TokenFile { return &TokenFile{name: name} }

// List returns the tokens, the oldest first.
func (f *TokenFile) List() ([]Token, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	info, err := os.Stat(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		f.seen, f.tokens, f.err = stamp{}, nil, nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	if now := (stamp{info.ModTime(), info.Size(), info}); !now.is(f.seen) {
		f.seen = now
		f.tokens, f.err = readTokens(f.name, info)
	}
	return slices.Clone(f.tokens), f.err
}

// document is the content of the file.
type document struct {
	Tokens []Token `json:"tokens"`
}

func readTokens(name string, info fs.FileInfo) ([]Token, error) {
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return nil, fmt.Errorf("the file of tokens %s has the mode %04o, with which others can read or change it; "+
			"do: chmod 0600",
			name, mode)
	}
	content, err := os.ReadFile(name) //nolint:gosec // the operator's file
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	var read document
	if err := json.Unmarshal(content, &read); err != nil {
		return nil, fmt.Errorf("the file of tokens %s is damaged: %w", name, err)
	}
	for _, token := range read.Tokens {
		if err := token.check(); err != nil {
			return nil, fmt.Errorf("the file of tokens %s is damaged: %w", name, err)
		}
	}
	return read.Tokens, nil
}

// Create makes a token, adds its description to the file, and returns the token. The token is stored nowhere.
func (f *TokenFile) Create(token Token) (secret string, err error) {
	secret = newSecret()
	token.Hash = hashOf(secret)
	if err := token.check(); err != nil {
		return "", &invalidTokenError{err}
	}
	return secret, f.change(func(tokens []Token) ([]Token, error) {
		if slices.ContainsFunc(tokens, func(other Token) bool { return other.Name == token.Name }) {
			return nil, ErrTokenExists
		}
		return append(tokens, token), nil
	})
}

// Revoke removes a token. Sessions that were opened with it end with their next request.
func (f *TokenFile) Revoke(name string) error {
	return f.change(func(tokens []Token) ([]Token, error) {
		kept := slices.DeleteFunc(slices.Clone(tokens), func(token Token) bool { return token.Name == name })
		if len(kept) == len(tokens) {
			return nil, ErrNoToken
		}
		return kept, nil
	})
}

// change replaces the tokens in the file. Only one process does so at a time.
func (f *TokenFile) change(edit func([]Token) ([]Token, error)) error {
	dir := filepath.Dir(f.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create the directory of the tokens: %w", err)
	}
	lock, err := f.lock()
	if err != nil {
		return fmt.Errorf("change the tokens: %w; try again", err)
	}
	defer func() { _ = lock.Close() }()
	tokens, err := f.List()
	if err == nil {
		tokens, err = edit(tokens)
	}
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(document{tokens}, "", "  ")
	if err == nil {
		err = replaceFile(f.name, append(content, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the tokens: %w", err)
	}
	return nil
}

// lock waits until no other process changes the tokens.
func (f *TokenFile) lock() (*filelock.Lock, error) {
	return filelock.Wait(context.Background(), filepath.Dir(f.name))
}

// replaceFile writes a file that only its owner can read. It replaces the whole file, or changes nothing.
func replaceFile(name string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// find returns the valid token whose hash is that of secret. The time of the search does not depend on the hashes.
func find(tokens []Token, secret string, now time.Time) (found Token, ok bool) {
	hash := hashOf(secret)
	for _, token := range tokens {
		if subtle.ConstantTimeCompare([]byte(token.Hash), []byte(hash)) == 1 && token.valid(now) {
			found, ok = token, true
		}
	}
	return found, ok
}
