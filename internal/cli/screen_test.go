package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/chaintest"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/discover"
	"github.com/claudeops/claudeops/internal/program"
)

const (
	// screenTimeout bounds the wait for the expected screen.
	screenTimeout = 2 * time.Minute
	// nobodysPatience is the patience for queries where no worker runs.
	nobodysPatience = time.Second
	// screenLook is the time between two looks at the screen.
	screenLook = 20 * time.Millisecond
	// screenSettle is the time without changes after which a screen is written as a golden file.
	screenSettle = time.Second
)

// screen runs the program on a pseudo-terminal. An emulator holds the screen as a person would see it.
type screen struct {
	t    *testing.T
	keys *os.File // text written here is typed
	done chan program.ExitCode

	mutex    sync.Mutex
	emulator *vt.Emulator
	raw      bytes.Buffer // everything sent to the terminal
}

// onScreen runs the program with args on a terminal of columns and rows.
func onScreen(t *testing.T, environ []string, columns, rows uint16, args ...string) *screen {
	t.Helper()
	return onScreenAt(t, chaintest.Clock, nil, environ, columns, rows, args...)
}

// onScreenOf is like onScreen, with another machine for `init` to look at.
func onScreenOf(
	t *testing.T, machine func([]string) discover.Host, environ []string, columns, rows uint16, args ...string,
) *screen {
	t.Helper()
	return onScreenAt(t, chaintest.Clock, machine, environ, columns, rows, args...)
}

// onScreenAt is like onScreen, with another clock and another machine for the program.
func onScreenAt(
	t *testing.T, clock console.Clock, machine func([]string) discover.Host, environ []string, columns, rows uint16, args ...string,
) *screen {
	t.Helper()
	keys, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Cols: columns, Rows: rows}))
	s := &screen{t: t, keys: keys, done: make(chan program.ExitCode, 1), emulator: vt.NewEmulator(int(columns), int(rows))}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(s, keys) })
	copying.Go(func() { _, _ = io.Copy(keys, s.emulator) }) // answers queries of the program to the terminal
	go func() {
		s.done <- execute(t.Context(), &console.Console{
			Process: program.Process{Args: args, Environ: slices.Concat(environ, []string{"TERM=xterm-256color"}), Stdin: tty, Stdout: tty, Stderr: tty},
			Clock:   clock, Patience: screenTimeout, Machine: machine,
		})
		_ = tty.Close()
	}()
	t.Cleanup(func() {
		_ = s.emulator.InputPipe().(io.Closer).Close()
		_ = keys.Close()
		copying.Wait()
	})
	return s
}

// Write receives the program's output.
func (s *screen) Write(printed []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.raw.Write(printed)
	return s.emulator.Write(printed)
}

// text returns the visible text.
func (s *screen) text() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var b strings.Builder
	for line := range strings.Lines(s.emulator.String() + "\n") {
		b.WriteString(strings.TrimRight(line, " \r\n") + "\n")
	}
	return b.String()
}

// sent returns everything that was sent to the terminal, with control sequences.
func (s *screen) sent() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.raw.String()
}

// sees waits until the screen contains text.
func (s *screen) sees(text string) {
	s.t.Helper()
	s.until("it shows "+text, func() bool { return strings.Contains(s.text(), text) })
}

func (s *screen) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(screenTimeout); !is(); time.Sleep(screenLook) {
		if time.Now().After(deadline) {
			require.Failf(s.t, "the screen never is as it should be", "%s\n%s", what, s.text())
		}
	}
}

// types sends text to the terminal. Control characters are the keys that produce them.
func (s *screen) types(text string) {
	s.t.Helper()
	_, err := s.keys.WriteString(text)
	require.NoError(s.t, err)
}

// is waits until the screen equals the golden file of that name. With -update it writes the file first.
func (s *screen) is(name string) {
	s.t.Helper()
	file := filepath.Join("testdata", "screens", name+".txt")
	if chaintest.Update() {
		s.settle()
		require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(s.t, os.WriteFile(file, []byte(s.text()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(s.t, err)
	for deadline := time.Now().Add(screenTimeout); s.text() != string(want) && time.Now().Before(deadline); {
		time.Sleep(screenLook)
	}
	require.Equal(s.t, string(want), s.text())
}

func (s *screen) settle() {
	last, since := s.text(), time.Now()
	for time.Since(since) < screenSettle {
		time.Sleep(screenLook)
		if now := s.text(); now != last {
			last, since = now, time.Now()
		}
	}
}

// ends waits until the program has ended, and returns its exit code.
func (s *screen) ends() program.ExitCode {
	s.t.Helper()
	select {
	case code := <-s.done:
		return code
	case <-time.After(screenTimeout):
		require.Failf(s.t, "the program has not ended", "%s", s.text())
		return program.ExitFailure
	}
}
