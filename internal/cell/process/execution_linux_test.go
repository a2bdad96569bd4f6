package process_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/binfmt"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// executes is a variable that makes the test binary an attacker's program. The value is a list of commands in JSON,
// which the program tries to execute.
const executes = "PROCESS_TEST_EXECUTES"

const (
	// fromMemory is a command that executes /bin/true from memory.
	fromMemory = "from memory"
	// limited is a command that executes another with a limit. Its first argument lists the permitted files.
	limited = "limited"
	// opensSocket is a command that opens a socket of the internet.
	opensSocket = "opens socket"
)

// becomeExecutor makes this process the attacker's program if the variable executes or openRace is set.
func becomeExecutor() {
	if os.Getenv(openRace) != "" {
		os.Exit(raceToOpen())
	}
	if os.Getenv(connectAttempt) != "" {
		connectTo()
		os.Exit(0)
	}
	if list := os.Getenv(executes); list != "" {
		os.Exit(tryToExecute(list))
	}
}

// tryToExecute tries each command of the list. For each it prints whether the kernel executed it. It returns the exit
// code.
func tryToExecute(list string) int {
	var commands [][]string
	if err := json.Unmarshal([]byte(list), &commands); err != nil {
		fmt.Println(err)
		return 1
	}
	for _, command := range commands {
		err := execute(command)
		if _, exited := errors.AsType[*exec.ExitError](err); exited {
			err = nil // it ran
		}
		fmt.Println(strings.Join(command, " ")+":", outcome(err))
	}
	return 0
}

// The outcomes of an attempt.
const (
	executed = "executed"
	denied   = "permission denied"
)

func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return executed
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

func execute(command []string) error {
	switch command[0] {
	case fromMemory:
		return executeFromMemory()
	case opensSocket:
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		return errors.Join(err, unix.Close(socket))
	case limited:
		return process.LimitExecution(strings.Split(command[1], ","), false, func() error { return execute(command[2:]) })
	}
	return (&exec.Cmd{Path: command[0], Args: command}).Run()
}

func executeFromMemory() error {
	descriptor, err := unix.MemfdCreate("program", 0)
	if err != nil {
		return err
	}
	program := os.NewFile(uintptr(descriptor), "program")
	source, err := os.Open("/bin/true")
	if err != nil {
		return err
	}
	if _, err := io.Copy(program, source); err != nil {
		return err
	}
	return (&exec.Cmd{Path: fmt.Sprintf("/proc/self/fd/%d", descriptor), Args: []string{"true"}}).Run()
}

// executor returns the spec of an attacker's program that tries the commands.
func executor(t *testing.T, mode process.Mode, commands ...[]string) process.Spec {
	t.Helper()
	list, err := json.Marshal(commands)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	return process.Spec{Path: self, Env: []string{executes + "=" + string(list)}, Containment: mode, Stderr: t.Output()}
}

// filesOf returns the files that are executed with the programs.
func filesOf(t *testing.T, paths ...string) (files []string) {
	t.Helper()
	programs := binfmt.Programs{Search: []string{"/usr/bin"}}
	for _, path := range paths {
		found := programs.With(path)
		require.NotEmpty(t, found, path)
		files = append(files, found...)
	}
	return files
}

// copyProgram copies a program, and returns the path of the copy.
func copyProgram(t *testing.T, from, to string) string {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, process.WriteProgram(to, content))
	return to
}

// TestExecutableFiles lets an attacker's program try to execute files that are in Sandbox.Executable, and others.
func TestExecutableFiles(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	s := newSite(t)
	script := filepath.Join(s.root, "script")
	require.NoError(t, process.WriteProgram(script, []byte("#!/bin/sh\nexit 0\n")))
	lonely := filepath.Join(s.root, "lonely")
	require.NoError(t, process.WriteProgram(lonely, []byte("#!/usr/bin/perl\nexit 0\n")))
	link := filepath.Join(s.workspace, "link")
	require.NoError(t, os.Symlink("/bin/ls", link))
	loader := filesOf(t, "/bin/ls")[1]
	allowed := append(filesOf(t, os.Args[0], "/bin/ls", "/bin/sh", script), lonely)
	cases := map[string]struct {
		command []string
		want    string
	}{
		"a listed program":               {[]string{"/bin/ls"}, executed},
		"a listed script":                {[]string{script}, executed},
		"a link to a listed program":     {[]string{link}, executed},
		"a program beside it":            {[]string{"/bin/cat"}, denied},
		"python":                         {[]string{"/usr/bin/python3", "--version"}, denied},
		"perl":                           {[]string{"/usr/bin/perl", "-v"}, denied},
		"a script without interpreter":   {[]string{lonely}, denied},
		"a copy in the workspace":        {[]string{copyProgram(t, "/bin/ls", filepath.Join(s.workspace, "x"))}, denied},
		"a copy elsewhere":               {[]string{copyProgram(t, "/bin/ls", filepath.Join(s.root, "x"))}, denied},
		"a program through the sandbox":  {[]string{"/proc/self/root/bin/cat"}, denied},
		"the loader with a program":      {[]string{loader, "/bin/cat", "/dev/null"}, executed}, // a known gap
		"a listed shell with a new file": {[]string{"/bin/sh", "-c", "/bin/cat /dev/null || exit 1"}, executed},
		fromMemory:                       {[]string{fromMemory}, unix.EPERM.Error()},
	}
	inEveryTree(t, func(t *testing.T, mode process.Mode) {
		for name, tt := range cases {
			spec := executor(t, mode, tt.command)
			spec.Sandbox = s.sandbox()
			spec.Sandbox.Executable = allowed
			_, printed := run(t, t.Context(), spec)
			require.Equal(t, strings.Join(tt.command, " ")+": "+tt.want+"\n", printed, name)
		}
	})
}

// TestLimitExecution lets programs that were started with a limit try to execute files. The programs then limit
// themselves again. This must never permit more. No other test runs meanwhile: LimitExecution hides this process, and
// a hidden process cannot start an init in a user namespace.
func TestLimitExecution(t *testing.T) { //nolint:paralleltest // see above
	requireLandlock(t)
	outer := filesOf(t, os.Args[0], "/bin/ls", "/bin/cat")
	inner := strings.Join(filesOf(t, "/bin/ls", "/bin/sh"), ",")
	spec := executor(t, process.ModeGroup, []string{"/bin/ls"}, []string{"/bin/cat", "/dev/null"}, []string{"/bin/sh", "-c", "exit 0"},
		[]string{limited, inner, "/bin/ls"}, []string{limited, inner, "/bin/cat", "/dev/null"}, []string{limited, inner, "/bin/sh", "-c", "exit 0"})
	start := func() ([]string, error) {
		printed, err := (&exec.Cmd{Path: spec.Path, Env: spec.Env}).Output()
		var outcomes []string
		for line := range strings.Lines(string(printed)) {
			outcomes = append(outcomes, strings.TrimSpace(line[strings.LastIndex(line, ":")+1:]))
		}
		return outcomes, err
	}
	var outcomes []string
	require.NoError(t, process.LimitExecution(outer, false, func() (err error) {
		outcomes, err = start()
		return err
	}))
	require.Equal(t, []string{executed, executed, denied, executed, denied, denied}, outcomes)

	require.ErrorIs(t, process.LimitExecution([]string{}, false, func() error {
		_, err := start()
		return err
	}), syscall.EACCES)

	outcomes, err := start() // this process itself has no limit
	require.NoError(t, err)
	require.Equal(t, []string{executed, executed, executed, executed, denied, executed}, outcomes)
}

// TestLimitExecutionOffline lets a program and its child open sockets. No other test runs meanwhile, as with
// TestLimitExecution.
func TestLimitExecutionOffline(t *testing.T) { //nolint:paralleltest // see above
	requireLandlock(t)
	files := filesOf(t, os.Args[0], "/bin/ls")
	for offline, want := range map[bool]string{false: executed, true: "operation not permitted"} {
		spec := executor(t, process.ModeGroup, []string{opensSocket}, []string{"/bin/ls"})
		var printed []byte
		require.NoError(t, process.LimitExecution(files, offline, func() (err error) {
			printed, err = (&exec.Cmd{Path: spec.Path, Env: spec.Env}).Output()
			return err
		}))
		require.Contains(t, string(printed), opensSocket+": "+want+"\n")
		require.Contains(t, string(printed), "/bin/ls: "+executed+"\n")
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0) // this process itself has no limit
	require.NoError(t, err)
	require.NoError(t, unix.Close(socket))
}

// BenchmarkLimitExecution measures the start of a program, with and without a limit.
func BenchmarkLimitExecution(b *testing.B) {
	requireLandlock(b)
	var programs binfmt.Programs
	files := programs.With("/bin/true")
	run := func() error { return (&exec.Cmd{Path: "/bin/true"}).Run() }
	b.Run("without", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, run())
		}
	})
	b.Run("with", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, process.LimitExecution(files, false, run))
		}
	})
}
