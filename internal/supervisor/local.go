package supervisor

import (
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
)

// The directory of a `starter up` below its state directory, and what is in it. Agents must not read it.
const (
	localDir = "up"
	// tokenName is the file with the token. It stays when the server ends.
	tokenName = "token"
	// serverName is the file that says where the server listens. The server's process holds its lock.
	serverName = "server.json"
)

// tokenBytes is the length of a token before it is written as text.
const tokenBytes = 32

var (
	// ErrLocalInUse is returned to a second `starter up` on one state directory.
	ErrLocalInUse = errors.New("another `starter up` runs on this state directory")
	// ErrNoLocal is returned where no `starter up` serves.
	ErrNoLocal = errors.New("no `starter up` serves on this state directory")
)

// LocalServer is the Temporal of a `starter up`, as other programs of the same user find it.
type LocalServer struct {
	Address string `json:"temporal_address"`
	// WebUI is the root of the Web UI; empty without one.
	WebUI string `json:"web_ui,omitempty"`
	// Token is what the server wants of every client. Whoever has it may do everything.
	Token string `json:"-"`
}

// ClientOptions returns o for this server.
func (s LocalServer) ClientOptions(o client.Options) client.Options {
	o.HostPort = s.Address
	o.Credentials = client.NewAPIKeyStaticCredentials(s.Token)
	o.ConnectionOptions.TLS = nil
	o.ConnectionOptions.TLSDisabled = true // credentials alone would switch it on
	return o
}

// isAt reports whether address leads to this server, however it spells the loopback address.
func (s LocalServer) isAt(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, ownPort, err := net.SplitHostPort(s.Address)
	return err == nil && port == ownPort && (strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback())
}

// FindLocal returns the server of the `starter up` that serves on a state directory now, or an error that wraps ErrNoLocal.
//
// What a server that has ended left behind does not count: any program could listen at its address by now, and would be
// given the token.
func FindLocal(stateDir string) (LocalServer, error) {
	dir := filepath.Join(stateDir, localDir)
	unlock, err := lockDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return LocalServer{}, noLocal(stateDir)
	}
	if err != nil {
		return LocalServer{}, fmt.Errorf("look for a `starter up`: %w", err)
	}
	defer unlock()
	server, err := readServer(filepath.Join(dir, serverName))
	if errors.Is(err, ErrNoLocal) {
		return LocalServer{}, noLocal(stateDir)
	}
	if err == nil {
		server.Token, err = readToken(filepath.Join(dir, tokenName))
	}
	if err != nil {
		return LocalServer{}, fmt.Errorf("look for a `starter up`: %w", err)
	}
	return server, nil
}

func noLocal(stateDir string) error { return fmt.Errorf("%w: %s", ErrNoLocal, stateDir) }

// readServer reads what a process has announced that lives.
func readServer(name string) (server LocalServer, err error) {
	file, err := os.Open(name) //nolint:gosec // of our own directory
	if errors.Is(err, fs.ErrNotExist) {
		return server, ErrNoLocal
	}
	if err != nil {
		return server, err
	}
	defer func() { _ = file.Close() }() // which unlocks, too
	err = flock(file, syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return server, ErrNoLocal
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return server, fmt.Errorf("lock %s: %w", name, err)
	}
	if json.NewDecoder(file).Decode(&server) != nil {
		return server, ErrNoLocal // it is about to start
	}
	return server, nil
}

// LocalLock is the hold of one `starter up` on its state directory. The kernel drops it with the process.
type LocalLock struct {
	// Token is what the server must ask for. It was made at the first start on the state directory.
	Token string

	dir  string
	file *os.File
}

// LockLocal takes a state directory, which must exist, for this process. The error is ErrLocalInUse if another has it.
func LockLocal(stateDir string) (_ *LocalLock, err error) {
	dir := filepath.Join(stateDir, localDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory for `starter up`: %w", err)
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c := &LocalLock{dir: dir}
	name := filepath.Join(dir, serverName)
	if c.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil { //nolint:gosec // of our own directory
		return nil, err
	}
	if err := flock(c.file, syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(ErrLocalInUse, c.file.Close())
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), c.file.Close())
	}
	err = c.file.Truncate(0)
	if err == nil {
		c.Token, err = keptToken(filepath.Join(dir, tokenName))
	}
	if err != nil {
		return nil, errors.Join(err, c.file.Close())
	}
	return c, nil
}

// Announce lets FindLocal find the server, which must listen by now and want the token of the lock.
func (c *LocalLock) Announce(server LocalServer) error {
	unlock, err := lockDir(c.dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := json.NewEncoder(c.file).Encode(server); err != nil {
		return fmt.Errorf("write where `starter up` serves: %w", err)
	}
	return nil
}

// Close gives the state directory back.
func (c *LocalLock) Close() error { return c.file.Close() }

// keptToken returns the token in the file of that name. It makes one if there is none, or if other users could read it.
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
	text := hex.EncodeToString(token)
	return text, writePrivate(name, text+"\n")
}

func readToken(name string) (string, error) {
	content, err := os.ReadFile(name) //nolint:gosec // of our own directory
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if decoded, err := hex.DecodeString(token); err != nil || len(decoded) != tokenBytes {
		return "", fmt.Errorf("file %s holds no token; remove it, and start `starter up` again, which makes one", name)
	}
	return token, nil
}

// writePrivate writes a file for its owner only, the whole of it or nothing.
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

// lockDir waits for its turn with a directory, which is short. The caller unlocks it.
func lockDir(name string) (unlock func(), err error) {
	dir, err := os.Open(name) //nolint:gosec // of our own directories
	if err != nil {
		return nil, err
	}
	if err := flock(dir, syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), dir.Close())
	}
	return func() { _ = dir.Close() }, nil // closing unlocks
}
