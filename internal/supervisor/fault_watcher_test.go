package supervisor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watchedVariable names the program whose processes a watcher looks for.
const watchedVariable = "FAULTS_WATCHED"

// watchPause is how long a watcher waits between two looks. An agent lives for hundreds of
// milliseconds, so none gets past it.
const watchPause = 5 * time.Millisecond

// sighting is one agent process as it was seen from outside, in /proc.
type sighting struct {
	Session string
	PID     int
	// Init is the process that started it, and InitStarted the kernel's time of that one's start.
	Init        int
	InitStarted string
	First, Last time.Time
}

// watched is what a watcher has to tell.
type watched struct {
	Looks int
	// Blind is the longest time between two looks.
	Blind     time.Duration
	Sightings []sighting
}

// watch looks for agents in a process of its own until stop.
type watch struct {
	process *roleProcess
	told    *bytes.Buffer
}

// startWatch starts to look for agents of the claude at that path.
func startWatch(t *testing.T, claude string) *watch {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("agents are watched through /proc, which only Linux has")
	}
	w := &watch{told: &bytes.Buffer{}}
	w.process = startRole(t, "watcher", w.told, watchedVariable+"="+claude)
	return w
}

// stop ends the watcher and returns what it saw.
func (w *watch) stop(t *testing.T) *watched {
	t.Helper()
	require.NoError(t, w.process.input.Close())
	require.NoError(t, w.process.Wait(), w.process.said.text())
	var seen watched
	require.NoError(t, json.Unmarshal(w.told.Bytes(), &seen))
	return &seen
}

// of returns the agents of one session, first to last.
func (w *watched) of(session string) []sighting {
	var found []sighting
	for _, agent := range w.Sightings {
		if agent.Session == session {
			found = append(found, agent)
		}
	}
	slices.SortFunc(found, func(a, b sighting) int { return a.First.Compare(b.First) })
	return found
}

// sessions lists the sessions that had an agent.
func (w *watched) sessions() []string {
	var ids []string
	for _, agent := range w.Sightings {
		ids = append(ids, agent.Session)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// requireAlone fails if two agents of one session were ever seen alive at once.
func (w *watched) requireAlone(t *testing.T) {
	t.Helper()
	for _, session := range w.sessions() {
		agents := w.of(session)
		for i := 1; i < len(agents); i++ {
			require.Truef(t, agents[i].First.After(agents[i-1].Last),
				"two agents of session %s were alive at once: %+v and %+v", session, agents[i-1], agents[i])
		}
	}
}

// watcherRole looks for agents until its standard input ends, and prints what it has seen.
func watcherRole() error {
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	goFirst()
	program := os.Getenv(watchedVariable)
	var seen watched
	living := map[string]int{} // index into seen.Sightings, by process number and session
	for last := time.Now(); ; {
		now := time.Now()
		seen.Looks++
		seen.Blind, last = max(seen.Blind, now.Sub(last)), now
		if err := seen.look(program, living); err != nil {
			return err
		}
		select {
		case <-over:
			return json.NewEncoder(os.Stdout).Encode(seen)
		case <-time.After(watchPause):
		}
	}
}

// goFirst gives the threads of this process, and those to come, precedence on a busy machine, where this
// user may do that.
func goFirst() {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, -15)
		}
	}
}

// look takes in the agents that live now.
func (w *watched) look(program string, living map[string]int) error {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	alive := map[string]bool{}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil {
			continue
		}
		session := sessionOf(pid, program)
		if session == "" {
			continue
		}
		now := time.Now() // a look takes its time, in which one agent may follow another
		key := fmt.Sprint(pid, session)
		at, known := living[key]
		if !known {
			_, parent := processStat(pid)
			if sessionOf(parent, program) == session {
				continue // a tool of the agent, forked and not executed yet
			}
			started, _ := processStat(parent)
			at, living[key] = len(w.Sightings), len(w.Sightings)
			w.Sightings = append(w.Sightings, sighting{Session: session, PID: pid, Init: parent, InitStarted: started, First: now})
		}
		w.Sightings[at].Last, alive[key] = now, true
	}
	for key := range living {
		if !alive[key] {
			delete(living, key)
		}
	}
	return nil
}

// sessionOf returns the session of an agent process; "" if the process is none. What was killed
// and only waits to be collected has no command line any more.
func sessionOf(pid int, program string) string {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || !bytes.HasPrefix(line, append([]byte(program), 0)) {
		return ""
	}
	args := strings.Split(string(line), "\x00")
	for _, flag := range []string{"--session-id", "--resume"} {
		if at := slices.Index(args, flag); at >= 0 && at+1 < len(args) {
			return args[at+1]
		}
	}
	return ""
}

// processStat returns when a process started, as the kernel counts, and its parent; "" if it is gone
// or only waits to be collected.
func processStat(pid int) (started string, parent int) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the state on
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[19], parent
}

// leftOver lists the processes that live and have the entry in their environment, and the inits that
// outlived their agents.
func (w *watched) leftOver(t *testing.T, mark string) []string {
	t.Helper()
	var left []string
	for _, agent := range w.Sightings {
		if started, _ := processStat(agent.Init); started != "" && started == agent.InitStarted {
			left = append(left, fmt.Sprintf("init %d of session %s", agent.Init, agent.Session))
		}
	}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range environs {
		environ, err := os.ReadFile(file)
		if err == nil && slices.Contains(strings.Split(string(environ), "\x00"), mark) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			left = append(left, fmt.Sprintf("%s: %q", filepath.Dir(file), line))
		}
	}
	return left
}
