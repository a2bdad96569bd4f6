package postgrestest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Options add to what every cluster has.
type Options struct {
	// TCP makes the cluster listen at an address of its own, too: see Cluster.Address.
	TCP bool
	// Files are written to the data directory. They replace those of initdb.
	Files map[string][]byte
	// Settings are parameters of the server in the form name=value.
	Settings []string
}

// Cluster is a PostgreSQL server with a directory of its own.
type Cluster struct {
	dir     string
	address netip.AddrPort
	// commands is the standard input of the script keeper. Closing commands ends the cluster.
	commands io.WriteCloser
	ended    chan struct{}
}

// keeper is the script that runs the server. The script reads commands from its standard input. The input ends when the
// test process ends, even by SIGKILL. Then the script stops the server and removes the directory.
const keeper = `
trap '' HUP INT TERM
bin=$1 dir=$2; shift 2
start() { "$bin/postgres" -D "$dir/data" -k "$dir" "$@" >>"$dir/log" 2>&1 & server=$!; }
end() { kill -QUIT $server; wait $server; }
start "$@"
while read -r command; do
	case $command in
	stop) end ;;
	start) start "$@" ;;
	esac
done
end
rm -rf "$dir"
`

// settings holds server options that make a cluster fast. They turn off the syncs to disk, because nobody needs the
// data after a crash of the machine.
var settings = []string{
	"-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off",
	"-c", "max_connections=300", "-c", "shared_buffers=32MB", "-c", "autovacuum=off",
}

// Start starts a cluster for one test. Use it for a test that stops the server.
func Start(t testing.TB) *Cluster {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith starts a cluster with options for one test.
func StartWith(t testing.TB, options Options) *Cluster {
	t.Helper()
	cluster, err := start(options)
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() { cluster.end(t) })
	return cluster
}

func (c *Cluster) end(t testing.TB) {
	t.Helper()
	require.NoError(t, c.commands.Close())
	<-c.ended
}

// StartStandby starts a standby server that replicates the cluster. The SQL function pg_promote makes the standby a
// primary server.
func (c *Cluster) StartStandby(t testing.TB) *Cluster {
	t.Helper()
	standby, err := startAs(Options{}, func(bin, dir string) []string {
		return []string{
			filepath.Join(bin, "pg_basebackup"), "-D", filepath.Join(dir, "data"), "-h", c.dir, "-U", "postgres", "-R",
			"-c", "fast", "--no-sync",
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() { standby.end(t) })
	return standby
}

// URL returns the URL of a database. If the argument others names further clusters, the URL contains all of them. The
// driver then connects to the first cluster that accepts writes.
func (c *Cluster) URL(database string, others ...*Cluster) string {
	address := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database}
	values := url.Values{"host": {c.dir}}
	if c.address.IsValid() {
		values.Set("port", c.port())
	}
	for _, other := range others {
		values.Set("host", values.Get("host")+","+other.dir)
		values.Set("target_session_attrs", "read-write")
	}
	address.RawQuery = values.Encode()
	return address.String()
}

// Address returns the TCP address of a cluster that has one.
func (c *Cluster) Address() netip.AddrPort { return c.address }

// port returns the port, which is also part of the socket's name.
func (c *Cluster) port() string {
	if c.address.IsValid() {
		return strconv.Itoa(int(c.address.Port()))
	}
	return "5432"
}

// Socket returns the path of the cluster's Unix socket.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL."+c.port()) }

// Crash kills the server without a shutdown, like a crash of the machine.
func (c *Cluster) Crash(t testing.TB) {
	t.Helper()
	c.command(t, "stop")
	require.Eventually(t, func() bool { _, err := os.Stat(c.Socket()); return os.IsNotExist(err) }, patience,
		10*time.Millisecond)
}

// Restart starts the server after Crash.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	c.command(t, "start")
	require.NoError(t, c.wait())
}

func (c *Cluster) command(t testing.TB, line string) {
	t.Helper()
	_, err := io.WriteString(c.commands, line+"\n")
	require.NoError(t, err)
}

// start starts an empty cluster.
func start(options Options) (*Cluster, error) {
	return startAs(options, func(bin, dir string) []string {
		return []string{
			filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres",
			"-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions",
		}
	})
}

// startAs starts a cluster. The argument create returns the command that creates the data directory.
func startAs(options Options, create func(bin, dir string) []string) (*Cluster, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	account, err := owner()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "claudeops-postgres-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, ended: make(chan struct{})}
	if err := c.prepare(create(bin, dir), account, options); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.begin(bin, account, options); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.wait(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(log))
	}
	return c, nil
}

// prepare runs the command create, which creates the data directory, and writes the files of the options.
func (c *Cluster) prepare(create []string, account *syscall.Credential, options Options) (err error) {
	if options.TCP {
		if c.address, err = freeAddress(); err != nil {
			return err
		}
	}
	if err := give(c.dir, account); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	initialize := exec.CommandContext(ctx, create[0], create[1:]...)
	c.confine(initialize, account)
	if output, err := initialize.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", create[0], err, bytes.TrimSpace(output))
	}
	for name, content := range options.Files {
		path := filepath.Join(c.dir, "data", name)
		if err := errors.Join(os.WriteFile(path, content, 0o600), give(path, account)); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the script keeper.
func (c *Cluster) begin(bin string, account *syscall.Credential, options Options) (err error) {
	arguments := append([]string{"-c", keeper, "sh", bin, c.dir}, settings...)
	if c.address.IsValid() {
		arguments = append(arguments, "-c", "listen_addresses="+c.address.Addr().String(), "-c", "port="+c.port())
	}
	for _, setting := range options.Settings {
		arguments = append(arguments, "-c", setting)
	}
	keep := exec.CommandContext(context.Background(), "/bin/sh", arguments...)
	c.confine(keep, account)
	if c.commands, err = keep.StdinPipe(); err != nil {
		return err
	}
	if err := keep.Start(); err != nil {
		return err
	}
	go func() {
		_ = keep.Wait() // if the script keeper fails, the tests notice that the server is gone
		close(c.ended)
	}()
	return nil
}

// confine lets a command run in the cluster's directory. If this process is root's, the command runs as another user,
// because PostgreSQL refuses to run as root.
func (c *Cluster) confine(command *exec.Cmd, account *syscall.Credential) {
	command.Dir, command.Env = c.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "LC_ALL=C"}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: account}
}

// give makes an account the owner of a file. nil is the account of this process.
func give(path string, account *syscall.Credential) error {
	if account == nil {
		return nil
	}
	return os.Chown(path, int(account.Uid), int(account.Gid))
}

// freeAddress returns a free TCP address. On Linux its host is one that no other process uses, so the port stays free
// until the server listens there.
func freeAddress() (netip.AddrPort, error) {
	ctx, pid := context.Background(), os.Getpid()
	own := fmt.Sprintf("127.%d.%d.%d:0", 64+pid>>16&63, pid>>8&255, pid&255)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", own)
	if err != nil { // other systems have 127.0.0.1 only
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	}
	if err != nil {
		return netip.AddrPort{}, err
	}
	address, err := netip.ParseAddrPort(listener.Addr().String())
	return address, errors.Join(err, listener.Close())
}

// wait waits until the server answers.
func (c *Cluster) wait() error {
	db, err := sql.Open("postgres", c.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if err = db.PingContext(context.Background()); err == nil {
			return nil
		}
		select {
		case <-c.ended:
			return errors.New("the server has ended")
		default:
		}
		if time.Since(began) > patience {
			return fmt.Errorf("the server does not answer: %w", err)
		}
	}
}

// binaries returns the directory with the programs of PostgreSQL. If initdb is not on PATH, and several versions are
// installed, it returns the directory of the newest.
func binaries() (string, error) {
	if found, err := exec.LookPath("initdb"); err == nil {
		if found, err = filepath.EvalSymlinks(found); err == nil {
			return filepath.Dir(found), nil
		}
	}
	var found []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin/initdb", "/usr/pgsql-*/bin/initdb",
		"/opt/homebrew/opt/postgresql@*/bin/initdb", "/usr/local/opt/postgresql@*/bin/initdb",
	} {
		matches, _ := filepath.Glob(pattern)
		found = append(found, matches...)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no initdb on PATH or in /usr/lib/postgresql: install the package postgresql, or set %s",
			URLVariable)
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

// version returns the number in a path such as /usr/lib/postgresql/15/bin/initdb.
func version(path string) int {
	digits := strings.TrimFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	number, _ := strconv.Atoi(digits) // 0 for another form
	return number
}

// owner returns the account that runs the cluster; nil for the account of this process. If this process runs as root,
// owner returns the account of another user.
func owner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is an account
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(uidErr, gidErr)
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is no user postgres or nobody")
}
