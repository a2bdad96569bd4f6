package claudesim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// programName is the base name that makes an executable act as the stand-in.
const programName = "claude"

// The files that Install and the stand-in keep in the program's directory.
const (
	scenarioFile = "claude.scenario.json"
	startsFile   = "claude.starts.jsonl"
	launchesFile = "claude.launches.jsonl"
	requestsFile = "claude.requests.jsonl"
	countsDir    = "claude.counts"
)

// Install creates an executable named claude in dir, and returns its path. The executable plays s, and is a link to the
// running program. If dir does not exist, Install creates dir.
//
// Installing again replaces the scenario and removes all records and counts.
func Install(dir string, s Scenario) (path string, err error) {
	data, err := s.encode()
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("install the stand-in claude: %w", err)
	}
	if err := prepare(dir, data); err != nil {
		return "", fmt.Errorf("install the stand-in claude: %w", err)
	}
	path = filepath.Join(dir, programName)
	if err := os.Symlink(self, path); err != nil {
		return "", fmt.Errorf("install the stand-in claude: %w", err)
	}
	return path, nil
}

// prepare writes the scenario to dir and removes the files of an earlier installation.
func prepare(dir string, scenario []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create its directory: %w", err)
	}
	for _, name := range []string{programName, startsFile, launchesFile, requestsFile, countsDir} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove the former one: %w", err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, countsDir), 0o700); err != nil {
		return fmt.Errorf("create its state: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, scenarioFile), scenario, 0o600); err != nil {
		return fmt.Errorf("write its scenario: %w", err)
	}
	return nil
}

// If a program that links this package is started under programName, it becomes the stand-in. That happens during
// initialization, before the packages of Temporal's server are initialized. The initialization of these packages would
// double the start time.
func init() { //nolint:gochecknoinits // must run before the packages that take long
	if len(os.Args) > 0 && filepath.Base(os.Args[0]) == programName {
		run()
	}
}

// run runs the stand-in and ends the process.
func run() {
	p, err := newProgram()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stand-in claude:", err)
		os.Exit(1)
	}
	code := p.main(os.Args[1:])
	// Do not use os.Exit, which takes a second in a program built with the race detector. There is nothing left to run
	// or flush.
	syscall.Exit(code)
}

// newProgram reads the scenario from the directory of the started executable.
func newProgram() (*program, error) {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return nil, fmt.Errorf("find my own path: %w", err)
	}
	home := filepath.Dir(path)
	data, err := os.ReadFile(filepath.Join(home, scenarioFile))
	if err != nil {
		return nil, fmt.Errorf("read my scenario: %w", err)
	}
	scenario, err := ParseScenario(data)
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find my working directory: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return &program{
		scenario: scenario, release: scenario.release(), records: records{dir: home}, dir: dir,
		env: environment(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
	}, nil
}

func environment() map[string]string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}
