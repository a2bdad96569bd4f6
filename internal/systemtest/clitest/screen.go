package clitest

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

	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

// Screen is the program on a pseudo-terminal. An emulator holds the screen as a person would see it.
type Screen struct {
	t    *testing.T
	keys *os.File // text written here is typed
	done chan program.ExitCode

	mutex    sync.Mutex
	emulator *vt.Emulator
	raw      bytes.Buffer // everything sent to the terminal
}

// OnScreen runs the program with args on a terminal of columns and rows.
func (s Starter) OnScreen(t *testing.T, environ []string, columns, rows uint16, args ...string) *Screen {
	t.Helper()
	keys, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(tty, &pty.Winsize{Cols: columns, Rows: rows}))
	shown := &Screen{
		t: t, keys: keys, done: make(chan program.ExitCode, 1),
		emulator: vt.NewEmulator(int(columns), int(rows)),
	}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(shown, keys) })
	copying.Go(func() { _, _ = io.Copy(keys, shown.emulator) }) // answers queries of the program to the terminal
	go func() {
		shown.done <- s.Execute(t.Context(), s.console(program.Process{
			Args: args, Environ: slices.Concat(environ, []string{"TERM=xterm-256color"}), Stdin: tty, Stdout: tty,
			Stderr: tty,
		}))
		_ = tty.Close()
	}()
	t.Cleanup(func() {
		if pipe, ok := shown.emulator.InputPipe().(io.Closer); ok {
			_ = pipe.Close()
		}
		_ = keys.Close()
		copying.Wait()
	})
	return shown
}

// Write receives the program's output.
func (s *Screen) Write(printed []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.raw.Write(printed)
	return s.emulator.Write(printed)
}

// Text returns the visible text.
func (s *Screen) Text() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var b strings.Builder
	for line := range strings.Lines(s.emulator.String() + "\n") {
		b.WriteString(strings.TrimRight(line, " \r\n") + "\n")
	}
	return b.String()
}

// Sent returns everything that was sent to the terminal, with control sequences.
func (s *Screen) Sent() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.raw.String()
}

// Sees waits until the screen contains text.
func (s *Screen) Sees(text string) {
	s.t.Helper()
	s.until("it shows "+text, func() bool { return strings.Contains(s.Text(), text) })
}

func (s *Screen) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(Timeout); !is(); time.Sleep(Look) {
		if time.Now().After(deadline) {
			require.Failf(s.t, "the screen never is as it should be", "%s\n%s", what, s.Text())
		}
	}
}

// Types sends text to the terminal. Control characters are the keys that produce them.
func (s *Screen) Types(text string) {
	s.t.Helper()
	_, err := s.keys.WriteString(text)
	require.NoError(s.t, err)
}

// Is waits until the screen equals the golden file of that name. With -update it writes the file first.
func (s *Screen) Is(name string) {
	s.t.Helper()
	file := filepath.Join("testdata", "screens", name+".txt")
	if chaintest.Update() {
		s.Settle()
		require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(s.t, os.WriteFile(file, []byte(s.Text()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(s.t, err)
	for deadline := time.Now().Add(Timeout); s.Text() != string(want) && time.Now().Before(deadline); {
		time.Sleep(Look)
	}
	require.Equal(s.t, string(want), s.Text())
}

// Settle waits until the screen does not change any more.
func (s *Screen) Settle() {
	last, since := s.Text(), time.Now()
	for time.Since(since) < settle {
		time.Sleep(Look)
		if now := s.Text(); now != last {
			last, since = now, time.Now()
		}
	}
}

// Ends waits until the program has ended, and returns its exit code. On a busy machine it may take long while the
// screen changes.
func (s *Screen) Ends() program.ExitCode {
	s.t.Helper()
	last, since, began := s.Text(), time.Now(), time.Now()
	for time.Since(since) < Timeout && time.Since(began) < 5*Timeout {
		select {
		case code := <-s.done:
			return code
		case <-time.After(Look):
		}
		if now := s.Text(); now != last {
			last, since = now, time.Now()
		}
	}
	require.Failf(s.t, "the program has not ended", "%s", last)
	return program.ExitFailure
}

// Emulator calls use with the emulator while the program cannot change the screen.
func (s *Screen) Emulator(use func(*vt.Emulator)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	use(s.emulator)
}
