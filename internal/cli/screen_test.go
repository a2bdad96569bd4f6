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

	"github.com/claudeops/claudeops/internal/cli/chaintest"
	"github.com/claudeops/claudeops/internal/cli/console"
	"github.com/claudeops/claudeops/internal/program"
)

const (
	// screenTimeout bounds how long a screen may take to look as it should.
	screenTimeout = 2 * time.Minute
	// nobodysPatience is for questions that no worker is there to answer.
	nobodysPatience = time.Second
	// screenLook is how often it is looked at.
	screenLook = 20 * time.Millisecond
	// screenSettle is how long a screen stays as it is before it becomes a golden one.
	screenSettle = time.Second
)

// screen is a run of the program on a pseudo-terminal, with an emulator that shows what a person
// would see. It is chaintest.Noon there.
type screen struct {
	t    *testing.T
	keys *os.File // what is written there is typed
	done chan program.ExitCode

	mutex    sync.Mutex
	emulator *vt.Emulator
	raw      bytes.Buffer // all that was sent to the terminal
}

// onScreen runs the program with args on a terminal of that size.
func onScreen(t *testing.T, environ []string, columns, rows uint16, args ...string) *screen {
	t.Helper()
	keys, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Cols: columns, Rows: rows}))
	s := &screen{t: t, keys: keys, done: make(chan program.ExitCode, 1), emulator: vt.NewEmulator(int(columns), int(rows))}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(s, keys) })
	copying.Go(func() { _, _ = io.Copy(keys, s.emulator) }) // a terminal answers when it is asked
	go func() {
		s.done <- execute(t.Context(), &console.Console{
			Process: program.Process{Args: args, Environ: slices.Concat(environ, []string{"TERM=xterm-256color"}), Stdin: tty, Stdout: tty, Stderr: tty},
			Clock:   chaintest.Clock, Patience: screenTimeout,
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

// Write shows what the program prints.
func (s *screen) Write(printed []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.raw.Write(printed)
	return s.emulator.Write(printed)
}

// text is what a person sees.
func (s *screen) text() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var b strings.Builder
	for line := range strings.Lines(s.emulator.String() + "\n") {
		b.WriteString(strings.TrimRight(line, " \r\n") + "\n")
	}
	return b.String()
}

// sent is all that the terminal was sent, with what it obeys.
func (s *screen) sent() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.raw.String()
}

// sees waits until text is on the screen.
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

// types enters text, and presses what its control characters mean.
func (s *screen) types(text string) {
	s.t.Helper()
	_, err := s.keys.WriteString(text)
	require.NoError(s.t, err)
}

// is waits until the screen is the golden one of that name; -update makes it that.
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

// ends waits until the program has ended, and returns what it ended with.
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
