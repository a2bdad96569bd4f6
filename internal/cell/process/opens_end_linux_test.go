package process_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// opener prints what it opens and what it is refused. It opens a secret file and another in turn.
const opener = `$| = 1; for (;;) { for (".env", "notes") { if (open(F, "<", $_)) { print "$_: ", scalar <F> } else { print "$_: $!\n" } } }`

// TestOpensWhenTheInitIsKilled kills the init while a program opens files. The program is killed, too, and reads no
// secret.
func TestOpensWhenTheInitIsKilled(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	s := newSite(t)
	s.secretsIn(t)
	leader := make(chan int, 1)
	// One of the programs is in a session of its own, and is not killed with the init.
	mark := newMark(t)
	spec := shell(t, process.ModeSubreaper, "cd "+s.workspace+"; setsid perl -e '"+opener+"' & exec perl -e '"+opener+"'")
	spec.Env, spec.Mark, spec.Sandbox = append(spec.Env, mark), mark, s.judged()
	spec.Started = func(tree process.Tree) { leader <- tree.PID }
	output := onText("notes: notes", 50, func() { require.NoError(t, syscall.Kill(<-leader, syscall.SIGKILL)) })
	spec.Stdout = output
	exit, _ := run(t, t.Context(), spec)
	require.Equal(t, syscall.SIGKILL, exit.Signal)
	require.Empty(t, living(t, mark))
	require.NotContains(t, output.text(), hiddenText)
	for line := range strings.Lines(output.text()) {
		require.Contains(t, []string{"notes: notes\n", ".env: Permission denied\n", "notes: Function not implemented\n", ".env: Function not implemented\n"}, line)
	}
}

// TestOpensWhenTheInitHangs stops the init while a program opens files. The program waits, and goes on when the init
// does. The end of the run ends both, although the init is stopped.
func TestOpensWhenTheInitHangs(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	for _, goesOn := range []bool{true, false} {
		t.Run(fmt.Sprint(goesOn), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.secretsIn(t)
			leader := make(chan int, 1)
			spec := shell(t, process.ModeSubreaper, "cd "+s.workspace+"; exec perl -e '"+opener+"'")
			spec.Sandbox, spec.Grace = s.judged(), time.Millisecond
			spec.Started = func(tree process.Tree) { leader <- tree.PID }
			stopped := make(chan int, 1)
			output := onText("notes: notes", 50, func() {
				pid := <-leader
				require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
				stopped <- pid
			})
			spec.Stdout = output
			ended := make(chan process.Exit, 1)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			go func() {
				exit, _ := process.Run(ctx, spec)
				ended <- exit
			}()
			pid := <-stopped
			await(t, func() bool { return isStopped(pid) })
			// What was answered before the stop may still be on its way.
			before := ""
			await(t, func() bool {
				last := before
				before = output.text()
				time.Sleep(20 * time.Millisecond)
				return last == before
			})
			if goesOn {
				require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
				await(t, func() bool { return len(output.text()) > len(before)+1000 })
			}
			end()
			<-ended
			if !goesOn {
				require.Less(t, len(output.text()), len(before)+1000) // an answer from before the stop can come late
			}
			require.NotContains(t, output.text(), hiddenText)
		})
	}
}

// TestJudgingEndsWithTheTree checks that an init has nothing to answer when its tree has ended: a run with judging
// takes hardly more time of the processor.
func TestJudgingEndsWithTheTree(t *testing.T) { //nolint:paralleltest // the time of other tests' programs would count
	requireOpens(t)
	s := newSite(t)
	spent := map[bool]int64{}
	for range 20 {
		for _, judge := range []bool{false, true} {
			sandbox := s.judged()
			if !judge {
				sandbox.Opens = nil
			}
			before := childrenUsed(t)
			_, err := process.Run(t.Context(), process.Spec{Path: "/bin/true", Sandbox: sandbox, Containment: process.ModeSubreaper})
			require.NoError(t, err)
			spent[judge] += childrenUsed(t) - before
		}
	}
	t.Log(spent)
	require.Less(t, float64(spent[true]), 1.4*float64(spent[false]))
}

// childrenUsed returns the time of the processor that ended children have used, in nanoseconds.
func childrenUsed(t testing.TB) int64 {
	t.Helper()
	var used unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_CHILDREN, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}

// onText returns a writer that calls act when a text has been written a number of times.
func onText(text string, times int, act func()) *textTrigger {
	return &textTrigger{wanted: text, times: times, act: sync.OnceFunc(act)}
}

type textTrigger struct {
	wanted string
	times  int
	act    func()

	mutex sync.Mutex
	buf   bytes.Buffer
}

func (w *textTrigger) Write(p []byte) (int, error) {
	w.mutex.Lock()
	n, err := w.buf.Write(p)
	reached := bytes.Count(w.buf.Bytes(), []byte(w.wanted)) >= w.times
	w.mutex.Unlock()
	if reached {
		w.act()
	}
	return n, err
}

func (w *textTrigger) text() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.buf.String()
}

// await waits until is returns true.
func await(t *testing.T, is func() bool) {
	t.Helper()
	require.Eventually(t, is, patience, time.Millisecond)
}

func isStopped(pid int) bool {
	state, _, err := stat(pid)
	return err == nil && state == "T"
}

// TestOpensWhileOthersAreSlow checks that a program opens files while the opening of others takes long: somebody has a
// lease of them.
func TestOpensWhileOthersAreSlow(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	s := newSite(t)
	s.secretsIn(t)
	var leased []*os.File
	for i := range 5 {
		file, err := os.Create(fmt.Sprintf("%s/slow%d", s.workspace, i))
		require.NoError(t, err)
		t.Cleanup(func() { _ = file.Close() })
		_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
		require.NoError(t, err)
		leased = append(leased, file)
	}
	script := `for i in 0 1 2 3 4; do cat slow$i && echo opened & done
		for i in $(seq 50); do read line < notes && echo "$line"; done; cat .env; wait`
	spec := shell(t, process.ModeSubreaper, "cd "+s.workspace+"\n"+script)
	spec.Sandbox = s.judged()
	output := onText("notes", 50, func() {
		for _, file := range leased {
			_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
			require.NoError(t, err)
		}
	})
	spec.Stdout = output
	run(t, t.Context(), spec)
	require.Equal(t, strings.Repeat("notes\n", 50)+strings.Repeat("opened\n", 5), output.text())
}
