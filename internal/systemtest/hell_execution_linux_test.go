package systemtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// executionAttacks returns attacks that execute what the policy does not grant. Some of them are made as the program
// cat, which the agent's shell starts with a limit of its own. The others are made with the rights of the CLI.
func executionAttacks() []attack {
	const loader = "the loader is executable, because programs need it, and runs every program that can be read"
	return []attack{
		{at: onPrograms, name: "execute python", act: asProgram(func() error { return execute("python3", "--version") })},
		{at: onPrograms, name: "execute perl", act: asProgram(func() error { return execute("perl", "-e", "exit") })},
		{at: onPrograms, name: "execute a shell", act: asProgram(func() error { return execute("sh", "-c", "exit") })},
		{at: onPrograms, name: "execute another program of the policy", act: asProgram(func() error { return execute("ls", "/") })},
		{at: onPrograms, name: "execute the CLI", act: asProgram(func() error { return exec.CommandContext(context.Background(), "/proc/self/exe").Run() })},
		{at: onProcesses, name: "read the CLI's environment", act: asProgram(readEnvironmentOfParent)},
		{at: onProcesses, name: "read the shell's memory through the thread that starts a program", act: asProgram(func() error {
			return execute("cat", fmt.Sprintf("/proc/%d/task/%d/environ", os.Getpid(), unix.Gettid()))
		})},
		{at: onPrograms, name: "execute a compiler", act: func(victim) error { return execute("cc", "--version") }},
		{at: onPrograms, name: "execute a file that no program needs", act: func(victim) error { return executeAny(isOpen) }},
		{at: onPrograms, name: "keep a granted program from running", act: func(victim) error { return executeAny(isShut) }},
		{at: onPrograms, name: "execute a file of its own", act: func(victim) error { return executeCopyIn(os.TempDir()) }},
		{at: onPrograms, name: "execute a file in the working directory", act: func(victim) error { return executeCopyIn(".") }},
		{at: onPrograms, name: "execute a file in its home", act: func(victim) error { return executeCopyIn(os.Getenv("HOME")) }},
		{at: onPrograms, name: "execute a program in memory", act: func(victim) error { return executeInMemory() }},
		{
			at: onPrograms, name: "execute a program with the loader", act: func(victim) error { return executeWithLoader("/usr/bin/perl", "-e", "exit") },
			open: map[hellMode]string{ordinaryUser: loader, rootAlone: loader, agentsUser: loader},
		},
	}
}

// asProgram returns an attack that a process of cat makes.
func asProgram(act func() error) func(victim) error {
	return func(victim) error {
		policy, tier, err := ownPolicy()
		if err != nil {
			return err
		}
		cat, err := filepath.EvalSymlinks("/bin/cat")
		if err != nil {
			return err
		}
		return process.LimitExecution(policy.Executables(tier).Of(cat), false, act)
	}
}

// ownPolicy returns the built-in policy, and the tier of this process.
func ownPolicy() (policy *guard.Policy, tier int, err error) {
	if tier, err = strconv.Atoi(os.Getenv("CLAUDEOPS_TIER")); err != nil {
		return nil, 0, err
	}
	policy, err = guard.ParsePolicy(deploy.Policy)
	return policy, tier, err
}

// readEnvironmentOfParent reads the environment of the process that started this one, which stands in for the CLI.
func readEnvironmentOfParent() error {
	_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
	return err
}

// execute runs a program of the host. The error says why it did not run.
func execute(name string, args ...string) error {
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin"} {
		err := exec.CommandContext(context.Background(), filepath.Join(dir, name), args...).Run()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fs.ErrNotExist
}

// executeCopyIn copies a program to a directory, and runs it there.
func executeCopyIn(dir string) error {
	content, err := os.ReadFile("/bin/true")
	if err != nil {
		return err
	}
	path, err := filepath.Abs(filepath.Join(dir, "x"+strconv.Itoa(os.Getpid())))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o700); err != nil {
		return err
	}
	return exec.CommandContext(context.Background(), path).Run()
}

// executeInMemory copies a program to a file in memory, and runs it.
func executeInMemory() error {
	content, err := os.ReadFile("/bin/true")
	if err != nil {
		return err
	}
	descriptor, err := unix.MemfdCreate("x", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(descriptor, content); err != nil {
		return err
	}
	return exec.CommandContext(context.Background(), fmt.Sprintf("/proc/self/fd/%d", descriptor)).Run()
}

// executeWithLoader lets the loader run a program.
func executeWithLoader(command ...string) error {
	loaders, err := filepath.Glob("/lib*/ld-linux*")
	if err != nil || len(loaders) == 0 {
		return fs.ErrNotExist
	}
	return exec.CommandContext(context.Background(), loaders[0], command...).Run()
}

// helperNames lists the names of files that a tier may execute besides the programs that its policy names: loaders,
// what these programs start, and the interpreters of those that are scripts.
func helperNames(tier int) *regexp.Regexp {
	names := `ld[-.].*|gzip|killall5|mawk|gawk|which\.debianutils|pg_wrapper|install|nc\.(openbsd|traditional)|.*-(nft|legacy)-?multi|` +
		`aws.*|gke-gcloud-auth-plugin|kubelogin|dash|perl[\d.]*|python3\.\d+|kmod|mariadb-admin|sendmail|apache2ctl|tput`
	if tier > 1 {
		names += `|ssh`
	}
	return regexp.MustCompile(`^(` + names + `)$`)
}

// The two questions to executeAny.
type question string

const (
	isOpen question = "a file is executable that is not granted"
	isShut question = "a file is granted and not executable"
)

// executeAny asks the kernel for each file in the policy's directories whether this process may execute it. It executes
// none of them. It returns nil if the answer to the question is yes for a file.
func executeAny(asked question) error {
	policy, tier, err := ownPolicy()
	if err != nil {
		return err
	}
	helpers, total := helperNames(tier), 0
	for _, dir := range policy.Directories {
		files, _ := os.ReadDir(dir)
		for _, file := range files {
			path, err := filepath.EvalSymlinks(filepath.Join(dir, file.Name()))
			if err != nil || unix.Access(path, unix.X_OK) != nil {
				continue
			}
			executable, err := mayExecute(path)
			if err != nil {
				return err
			}
			interpreted := slices.Contains([]string{"bash", "sh", "dash"}, file.Name())
			granted := policy.Runs(tier, file.Name()) && !interpreted
			// A link and its target are one file: gunzip is gzip. A helper may be executable and need not be.
			other := policy.Runs(tier, filepath.Base(path)) || helpers.MatchString(filepath.Base(path))
			if asked == isOpen && executable && !granted && !other || asked == isShut && !executable && granted {
				fmt.Fprintln(os.Stderr, path)
				return nil
			}
			total++
		}
	}
	return fmt.Errorf("none of %d", total)
}

// mayExecute reports whether the kernel would execute a file.
func mayExecute(path string) (bool, error) {
	const onlyCheck = 0x10000 // AT_EXECVE_CHECK, since Linux 6.14
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return false, err
	}
	here := unix.AT_FDCWD
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(here), uintptr(unsafe.Pointer(name)), 0, 0, onlyCheck, 0) //nolint:gosec // how the kernel takes it
	if errno != 0 && errno != syscall.EACCES {
		return false, fmt.Errorf("%s: %w", path, errno)
	}
	return errno == 0, nil
}
