// Package forgetest is a stand-in for GitHub and GitLab behind the programs gh and glab. It keeps pull requests in a
// file.
package forgetest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// variable makes the test binary run as a program of a forge. Its value is the directory of the stand-in.
const variable = "CLAUDEOPS_TEST_FORGE"

// Forge is a stand-in.
type Forge struct {
	// Bin is the directory that contains the programs.
	Bin string

	dir string
}

// PullRequest is a pull request at a forge.
type PullRequest struct {
	Number   int      `json:"number"`
	Branch   string   `json:"branch"`
	Base     string   `json:"base"`
	Title    string   `json:"title"`
	Body     string   `json:"body"`
	Comments []string `json:"comments"`
	Closed   bool     `json:"closed"`
	// Fork reports that the branch is one of a fork.
	Fork bool `json:"fork"`
}

// Call is a call of one of the programs.
type Call struct {
	Program string   `json:"program"`
	Args    []string `json:"args"`
	Input   string   `json:"input"`
}

// Failure makes requests fail.
type Failure struct {
	// Method and Path select the requests. Path is a part of the endpoint.
	Method string `json:"method"`
	Path   string `json:"path"`
	Status int    `json:"status"`
	// Reason is the message of the forge; empty for the text of the status.
	Reason string `json:"reason,omitempty"`
	// Times limits how often; 0 for always. If After is true, the request takes effect, and only its answer is lost.
	Times int  `json:"times"`
	After bool `json:"after"`
}

// state is the content of the file.
type state struct {
	PullRequests []PullRequest `json:"pull_requests"`
	Failure      Failure       `json:"failure"`
	// Hosts lists the hosts for which there is a login.
	Hosts []string `json:"hosts"`
}

// Install makes programs with these names. The TestMain of the calling package must call Run.
func Install(t testing.TB, programs ...string) Forge {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	f := Forge{Bin: t.TempDir(), dir: t.TempDir()}
	for _, program := range programs {
		script := fmt.Sprintf("#!/bin/sh\n%[1]s='%[2]s' %[1]s_NAME=%[3]s exec '%[4]s' \"$@\"\n", variable, f.dir,
			program, self)
		require.NoError(t, process.WriteProgram(filepath.Join(f.Bin, program), []byte(script)))
	}
	f.write(t, state{Hosts: []string{"github.com", "gitlab.com"}})
	return f
}

func (f Forge) read(t testing.TB) (kept state) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "state"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &kept))
	return kept
}

func (f Forge) write(t testing.TB, kept state) {
	t.Helper()
	text, err := json.Marshal(kept)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "state"), text, 0o600))
}

// PullRequests returns the pull requests.
func (f Forge) PullRequests(t testing.TB) []PullRequest {
	t.Helper()
	return f.read(t).PullRequests
}

// Add adds a pull request.
func (f Forge) Add(t testing.TB, one PullRequest) {
	t.Helper()
	kept := f.read(t)
	kept.add(&one)
	f.write(t, kept)
}

// Fail makes requests fail from now on.
func (f Forge) Fail(t testing.TB, failure Failure) {
	t.Helper()
	kept := f.read(t)
	kept.Failure = failure
	f.write(t, kept)
}

// Login replaces the hosts for which there is a login.
func (f Forge) Login(t testing.TB, hosts ...string) {
	t.Helper()
	kept := f.read(t)
	kept.Hosts = hosts
	f.write(t, kept)
}

// Calls returns the calls of the programs so far.
func (f Forge) Calls(t testing.TB) (calls []Call) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "calls"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var call Call
		require.NoError(t, json.Unmarshal([]byte(line), &call))
		calls = append(calls, call)
	}
	return calls
}

// Run runs this process as a program of a forge and exits, if it was started as one.
func Run() {
	dir := os.Getenv(variable)
	if dir == "" {
		return
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	os.Exit(play(dir, Call{os.Getenv(variable + "_NAME"), os.Args[1:], string(input)}))
}

// play does what a call asks for, and returns the exit code.
func play(dir string, call Call) int {
	line, err := json.Marshal(call)
	if err == nil {
		err = appendTo(filepath.Join(dir, "calls"), append(line, '\n'))
	}
	var kept state
	text, readErr := os.ReadFile(filepath.Join(dir, "state"))
	if err != nil || readErr != nil || json.Unmarshal(text, &kept) != nil {
		panic(fmt.Sprint(err, readErr))
	}
	p := &player{state: kept, call: call}
	code := p.play()
	if text, err = json.Marshal(p.state); err == nil {
		err = os.WriteFile(filepath.Join(dir, "state"), text, 0o600)
	}
	if err != nil {
		panic(err)
	}
	return code
}

func appendTo(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// add adds a pull request with the next number.
func (s *state) add(one *PullRequest) {
	one.Number = len(s.PullRequests) + 1
	s.PullRequests = append(s.PullRequests, *one)
}

// open returns the open pull request of a branch of the repository itself; nil if there is none.
func (s *state) open(branch string) *PullRequest {
	at := slices.IndexFunc(s.PullRequests, func(one PullRequest) bool {
		return one.Branch == branch && !one.Closed &&
			!one.Fork
	})
	if at < 0 {
		return nil
	}
	return &s.PullRequests[at]
}

// fails reports whether a request fails now, and counts it.
func (s *state) fails(method, endpoint string) bool {
	failure := &s.Failure
	if failure.Status == 0 || failure.Method != method || !strings.Contains(endpoint, failure.Path) {
		return false
	}
	failure.Times--
	if failure.Times == 0 {
		*failure = Failure{}
	}
	return true
}
