package systemtest

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

// watchedVariable is the variable with the path of the program that a watcher looks for.
const watchedVariable = "FAULTS_WATCHED"

// watchPause is the time between two looks of a watcher. An agent lives for hundreds of milliseconds, so the watcher
// sees each one.
const watchPause = 5 * time.Millisecond

// sighting is an agent process as seen in /proc.
type sighting struct {
	Session string
	PID     int
	// Init is the PID of the process that started the agent. InitStarted is the kernel's start time of that process.
	Init        int
	InitStarted string
	First, Last time.Time
}

// watched is the report of a watcher.
type watched struct {
	Looks int
	// Blind is the longest time between two looks.
	Blind     time.Duration
	Sightings []sighting
}

// watch is a watcher: a separate process that looks for agents until stop.
type watch struct {
	process *roleProcess
	told    *bytes.Buffer
}

// startWatch starts a watcher for agents of the claude at that path.
func startWatch(t *testing.T, claude string) *watch {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("agents are watched through /proc, which only Linux has")
	}
	w := &watch{told: &bytes.Buffer{}}
	w.process = startRole(t, "watcher", w.told, watchedVariable+"="+claude)
	return w
}

// stop ends the watcher and returns its report.
func (w *watch) stop(t *testing.T) *watched {
	t.Helper()
	require.NoError(t, w.process.input.Close())
	require.NoError(t, w.process.Wait(), w.process.said.text())
	var seen watched
	require.NoError(t, json.Unmarshal(w.told.Bytes(), &seen))
	return &seen
}

// of returns the sightings of a session's agents, first to last.
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

// watcherRole looks for agents until its standard input ends, and then prints its report.
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

// goFirst raises the priority of this process's threads, so that a busy machine does not delay them. Later threads
// inherit the priority. If this user may not raise it, goFirst does nothing.
func goFirst() {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, -15)
		}
	}
}

// look records the agents that are alive now.
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
		now := time.Now() // read for each process: during a look, one agent may follow another
		key := fmt.Sprint(pid, session)
		at, known := living[key]
		if !known {
			_, parent := processStat(pid)
			started, _ := processStat(parent)
			if sessionOf(parent, program) == session || !w.isAgent(session, parent, started) {
				continue // a child of the agent that has not executed its own program yet
			}
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

// isAgent reports whether a process of a session is a new agent, and not a fork of one that has not executed its own
// program yet. Such a fork has the agent's command line. Its parent is the agent or, if the agent has just ended, the
// agent's init, or the fork has ended itself before its parent could be read. Each agent has an init of its own, which
// starts nothing else.
func (w *watched) isAgent(session string, init int, initStarted string) bool {
	return initStarted != "" && !slices.ContainsFunc(w.Sightings, func(other sighting) bool {
		return other.Session == session && other.Init == init && other.InitStarted == initStarted
	})
}

// sessionOf returns the session of an agent process. It returns "" for other processes, and for a killed process that
// has not been reaped, because it has no command line.
func sessionOf(pid int, program string) string {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || !bytes.HasPrefix(line, append([]byte(program), 0)) {
		return ""
	}
	return sessionIn(strings.Split(string(line), "\x00"))
}

// sessionIn returns the session that the arguments of an agent name. It returns "" if they name none.
func sessionIn(args []string) string {
	for _, flag := range []string{"--session-id", "--resume"} {
		if at := slices.Index(args, flag); at >= 0 && at+1 < len(args) {
			return args[at+1]
		}
	}
	return ""
}

// processStat returns a process's start time as the kernel counts it, and its parent. The start time is "" if the
// process has ended, even if it has not been reaped.
func processStat(pid int) (started string, parent int) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the fields from the state on
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[19], parent
}

// leftOver lists the living processes that have mark in their environment, and the inits that outlived their agents.
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

// TestWatcherCountsNoForks checks that a fork of an agent is no second agent, wherever its parent is by then.
func TestWatcherCountsNoForks(t *testing.T) {
	t.Parallel()
	w := &watched{Sightings: []sighting{{Session: "a", PID: 12, Init: 11, InitStarted: "100"}}}
	require.False(t, w.isAgent("a", 0, ""), "it has ended, and its parent is unknown")
	require.False(t, w.isAgent("a", 11, "100"), "the init has adopted it")
	require.True(t, w.isAgent("a", 11, "200"), "another init has the number")
	require.True(t, w.isAgent("a", 21, "100"), "the next attempt")
	require.True(t, w.isAgent("b", 31, "100"))
}
