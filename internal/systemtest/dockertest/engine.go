//go:build linux

// Package dockertest runs a container engine of its own for tests: dockerd with a directory and a socket of its own,
// and images that are made of busybox, because nothing is pulled.
package dockertest

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience limits the wait for the engine.
const patience = time.Minute

// Engine is a container engine with a directory of its own.
type Engine struct {
	dir     string
	environ []string
	// input is the standard input of the script keeper. Closing it ends the engine and its containers.
	input io.WriteCloser
	ended chan struct{}
}

// keeper is the script that runs the engine. Its input ends when the test process ends, even by SIGKILL. Then it
// removes the containers, ends the engine, and removes the directory.
const keeper = `
trap '' HUP INT TERM
dir=$1
dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" -H "unix://$dir/s" >"$dir/log" 2>&1 &
server=$!
cat >/dev/null
containers=$(docker -H "unix://$dir/s" ps -aq) && [ -z "$containers" ] || docker -H "unix://$dir/s" rm -f $containers
kill "$server"
wait "$server"
rm -rf "$dir"
`

// Start starts an engine for one test. The test is skipped where none can run, but for CI, where it fails.
func Start(t testing.TB) *Engine {
	t.Helper()
	if err := canRun(); err != nil {
		if os.Getenv("CI") != "" {
			require.NoError(t, err, "CI installs docker.io, busybox-static and iptables")
		}
		t.Skip("no container engine: ", err)
	}
	dir, err := os.MkdirTemp("", "docker") //nolint:usetesting // the keeper removes it; short, for the engine's sockets
	require.NoError(t, err)
	command := exec.Command("/bin/sh", "-c", keeper, "keeper", dir) //nolint:noctx // it ends with its input
	input, err := command.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	e := &Engine{dir: dir, input: input, ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		require.NoError(t, input.Close())
		<-e.ended
	})
	e.environ = append(os.Environ(), "DOCKER_HOST="+e.Host(), "DOCKER_CONFIG="+dir)
	require.Eventually(t, func() bool { return e.command(t, "docker", "version").Run() == nil }, patience,
		100*time.Millisecond, e.log)
	return e
}

// canRun returns why no engine can run here.
func canRun() error {
	if os.Getuid() != 0 {
		return errors.New("it runs as root")
	}
	for _, name := range []string{"dockerd", "docker", "iptables", "/bin/busybox"} {
		if _, err := exec.LookPath(name); err != nil {
			return err
		}
	}
	return nil
}

// log returns what the engine has logged.
func (e *Engine) log() string {
	log, _ := os.ReadFile(filepath.Join(e.dir, "log"))
	return string(log)
}

// Host returns the engine's address, as DOCKER_HOST takes it.
func (e *Engine) Host() string { return "unix://" + filepath.Join(e.dir, "s") }

// Environ returns the environment with which docker and its plugins reach this engine.
func (e *Engine) Environ() []string { return slices.Clip(e.environ) }

// AddCompose installs docker compose as a plugin for commands in Environ. It is built by make.
func (e *Engine) AddCompose(t testing.TB, binary string) {
	t.Helper()
	binary, err := filepath.Abs(binary)
	require.NoError(t, err)
	require.FileExists(t, binary, "run make "+filepath.Base(binary))
	plugins := filepath.Join(e.dir, "cli-plugins")
	require.NoError(t, os.MkdirAll(plugins, 0o750))
	require.NoError(t, os.Symlink(binary, filepath.Join(plugins, "docker-compose")))
}

func (e *Engine) command(t testing.TB, words ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), words[0], words[1:]...)
	command.Env = e.environ
	return command
}

// Docker runs docker and returns what it prints.
func (e *Engine) Docker(t testing.TB, words ...string) string {
	t.Helper()
	output, err := e.command(t, append([]string{"docker"}, words...)...).CombinedOutput()
	require.NoError(t, err, "docker %v: %s", words, output)
	return strings.TrimSpace(string(output))
}

// Import makes an image of busybox and of files, whose paths are absolute. Its containers run the command.
func (e *Engine) Import(t testing.TB, names []string, files map[string]string, command ...string) {
	t.Helper()
	var root bytes.Buffer
	writer := tar.NewWriter(&root)
	busybox, err := os.ReadFile("/bin/busybox")
	require.NoError(t, err)
	write := func(header tar.Header, content []byte) {
		header.Size = int64(len(content))
		require.NoError(t, writer.WriteHeader(&header))
		_, err := writer.Write(content)
		require.NoError(t, err)
	}
	for _, dir := range []string{"bin/", "etc/", "tmp/", "var/", "usr/", "usr/bin/", "usr/sbin/"} {
		write(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil)
	}
	write(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, busybox)
	applets, err := exec.CommandContext(t.Context(), "/bin/busybox", "--list").Output()
	require.NoError(t, err)
	for applet := range strings.FieldsSeq(string(applets)) {
		if _, replaced := files["/bin/"+applet]; !replaced && applet != "busybox" {
			write(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox"}, nil)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		write(tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(path, "/"), Mode: 0o755}, []byte(files[path]))
	}
	require.NoError(t, writer.Close())
	words := []string{"docker", "import", "--change", "ENV PATH=/usr/bin:/usr/sbin:/bin"}
	if len(command) > 0 {
		words = append(words, "--change", `CMD ["`+strings.Join(command, `", "`)+`"]`)
	}
	imported := e.command(t, append(words, "-", names[0])...)
	imported.Stdin = &root
	output, err := imported.CombinedOutput()
	require.NoError(t, err, "%s", output)
	for _, name := range names[1:] {
		e.Docker(t, "tag", names[0], name)
	}
}
