package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.temporal.io/sdk/client"

	"github.com/claudeops/claudeops/internal/filelock"
)

// localDir is the directory for the files of a `claudeops up`, below its state directory. The other constants name
// these files. Agents must not read them.
const (
	localDir = "up"
	// tokenName is the file with the token. When the server ends, this file stays.
	tokenName = "token"
	// serverName is the file with the server's address. While the server runs, its process holds a lock on this file.
	serverName = "server.json"
)

// tokenBytes is the length of a token in bytes, before its encoding as hexadecimal text.
const tokenBytes = 32

var (
	// ErrLocalInUse is the error if another `claudeops up` already runs on the state directory.
	ErrLocalInUse = errors.New("another `claudeops up` runs on this state directory")
	// ErrNoLocal is the error if no `claudeops up` runs on a state directory.
	ErrNoLocal = errors.New("no `claudeops up` serves on this state directory")
)

// LocalServer is the Temporal server of a `claudeops up`. Other programs of the same user can connect to it.
type LocalServer struct {
	Address string `json:"temporal_address"`
	// WebUI is the root URL of the Web UI; empty if the server has no Web UI.
	WebUI string `json:"web_ui,omitempty"`
	// Pages is the root URL of the pages; empty if they are not served.
	Pages string `json:"pages,omitempty"`
	// Process is the process of the `claudeops up`.
	Process LocalProcess `json:"process,omitzero"`
	// Token is the key that the server requires from every client. It gives full access.
	Token string `json:"-"`
}

// ClientOptions returns o with the address and the token of this server.
func (s LocalServer) ClientOptions(o client.Options) client.Options {
	o.HostPort = s.Address
	o.Credentials = client.NewAPIKeyStaticCredentials(s.Token)
	o.ConnectionOptions.TLS = nil
	o.ConnectionOptions.TLSDisabled = true // the credentials would enable TLS
	return o
}

// isAt reports whether address is the address of this server. It treats all names of the loopback address as equal.
func (s LocalServer) isAt(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, ownPort, err := net.SplitHostPort(s.Address)
	return err == nil && port == ownPort && isLoopback(host)
}

// IsOnThisHost reports whether the host in address is a name of the loopback address.
func IsOnThisHost(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// FindLocal returns the server of the `claudeops up` that runs on stateDir. If no `claudeops up` runs there, the error
// wraps ErrNoLocal.
//
// FindLocal ignores the files of a server that has ended. Another program could now listen at the address of that
// server, and would receive the token.
func FindLocal(stateDir string) (LocalServer, error) {
	dir := filepath.Join(stateDir, localDir)
	turn, err := filelock.Wait(context.Background(), dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return LocalServer{}, noLocal(stateDir)
	}
	if err != nil {
		return LocalServer{}, fmt.Errorf("look for a `claudeops up`: %w", err)
	}
	defer func() { _ = turn.Close() }()
	server, err := readServer(filepath.Join(dir, serverName))
	if errors.Is(err, ErrNoLocal) {
		return LocalServer{}, noLocal(stateDir)
	}
	if err == nil {
		server.Token, err = readToken(filepath.Join(dir, tokenName))
	}
	if err != nil {
		return LocalServer{}, fmt.Errorf("look for a `claudeops up`: %w", err)
	}
	return server, nil
}

// IsLocal reports whether options connect to the server of the `claudeops up` on stateDir.
func IsLocal(options client.Options, stateDir string) bool {
	server, err := FindLocal(stateDir)
	return err == nil && server.isAt(options.HostPort)
}

func noLocal(stateDir string) error { return fmt.Errorf("%w: %s", ErrNoLocal, stateDir) }

// readServer returns the server that a file describes, if the server's process still runs. If the process has ended,
// or the server is not announced yet, the error is ErrNoLocal.
func readServer(name string) (server LocalServer, err error) {
	held, err := filelock.IsHeld(name)
	if errors.Is(err, fs.ErrNotExist) {
		return server, ErrNoLocal
	}
	if err != nil {
		return server, err
	}
	if !held {
		return server, ErrNoLocal
	}
	content, err := os.ReadFile(name) //nolint:gosec // of our own directory
	if err != nil {
		return server, err
	}
	if json.Unmarshal(content, &server) != nil {
		return LocalServer{}, ErrNoLocal // the server's process has not announced the server yet
	}
	return server, nil
}

// LocalLock is the lock of a `claudeops up` on its state directory. The kernel releases the lock when the process ends.
type LocalLock struct {
	// Token is the token that the server must require. The first `claudeops up` on the state directory creates this
	// token.
	Token string

	dir  string
	lock *filelock.Lock
}

// LockLocal locks a state directory for this process. If the directory is missing, LockLocal creates the directory. If
// another process has locked the directory, the error is ErrLocalInUse.
func LockLocal(stateDir string) (_ *LocalLock, err error) {
	dir := filepath.Join(stateDir, localDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory for `claudeops up`: %w", err)
	}
	turn, err := filelock.Wait(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = turn.Close() }()
	c := &LocalLock{dir: dir}
	name := filepath.Join(dir, serverName)
	if c.lock, err = filelock.Create(name); errors.Is(err, filelock.ErrHeld) {
		return nil, ErrLocalInUse
	} else if err != nil {
		return nil, err
	}
	err = os.Truncate(name, 0)
	if err == nil {
		c.Token, err = keptToken(filepath.Join(dir, tokenName))
	}
	if err != nil {
		return nil, errors.Join(err, c.lock.Close())
	}
	return c, nil
}

// Announce makes server known to FindLocal. Before the call, the server must listen and must require c.Token.
func (c *LocalLock) Announce(server LocalServer) error {
	turn, err := filelock.Wait(context.Background(), c.dir)
	if err != nil {
		return err
	}
	defer func() { _ = turn.Close() }()
	content, err := json.Marshal(server)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, serverName), content, 0o600); err != nil {
		return fmt.Errorf("write where `claudeops up` serves: %w", err)
	}
	return nil
}

// Close releases the lock on the state directory.
func (c *LocalLock) Close() error { return c.lock.Close() }

// OpenToken returns the token in a file. If the file is missing, OpenToken creates it with a new token. If the group
// of the file can change it, or users outside of the group can read or change it, OpenToken returns an error.
func OpenToken(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.Mode().Perm()&0o027 != 0:
		return "", fmt.Errorf("token file %s has the mode %04o, with which others can read or change it; do: chmod "+
			"0600",
			name, info.Mode().Perm())
	case err == nil:
		return readToken(name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", fmt.Errorf("create the directory of the token: %w", err)
	}
	return keptToken(name)
}

// tokenPrefix is the beginning of every token, by which masking finds it in text.
const tokenPrefix = "claudeops-token-"

// keptToken returns the token in a file. If the file is missing, or if other users can access it, keptToken replaces
// the file with a new token.
func keptToken(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	case info.Mode().Perm()&0o077 == 0:
		return readToken(name)
	}
	token := make([]byte, tokenBytes)
	_, _ = rand.Read(token) // it never fails
	text := tokenPrefix + hex.EncodeToString(token)
	return text, writePrivate(name, text+"\n")
}

func readToken(name string) (string, error) {
	content, err := os.ReadFile(name) //nolint:gosec // of our own directory
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	digits, marked := strings.CutPrefix(token, tokenPrefix)
	if decoded, err := hex.DecodeString(digits); !marked || err != nil || len(decoded) != tokenBytes {
		return "", fmt.Errorf("file %s holds no token; remove it and start again, which makes one", name)
	}
	return token, nil
}

// writePrivate writes a file that only its owner can read. It replaces the whole file, or changes nothing.
func writePrivate(name, content string) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
