package systemtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/deploy"
	"github.com/claudeops/claudeops/internal/cell/guard"
)

// hellSecret is the content of the secret files, which everybody may read as far as the file system is concerned.
const hellSecret = "the password of the database"

// temptingFiles lists the secret files of the stage, in a directory that agents may read: one of each kind of pattern
// in the policy.
func temptingFiles() []string {
	return []string{
		".env", "id_ed25519", "tls.pem", "secrets/plain", ".kube/config", ".git/config", "db_password.txt", "prod.tfvars", "auth.json",
		".config/gh/hosts.yml", ".netrc", "token", "acme.json", "vault.yaml", ".credentials.json",
	}
}

// writeSecrets writes the secret files, and a file that is none.
func writeSecrets(dir string) error {
	for _, name := range append(temptingFiles(), "notes") {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // agents may pass
			return err
		}
		content := hellSecret
		if name == "notes" {
			content = name
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// fileAttacks returns attacks that read secret files which the agent's user may read. Only the judging of files refuses
// them.
func fileAttacks() []attack {
	list := []struct {
		name string
		read func(path string) ([]byte, error)
	}{
		{"by its name", os.ReadFile},
		{"through a link", func(path string) ([]byte, error) {
			link := filepath.Join(os.Getenv("TMPDIR"), fmt.Sprint("link-", os.Getpid()))
			if err := os.Symlink(path, link); err != nil {
				return nil, err
			}
			return os.ReadFile(link)
		}},
		{"through a link to its directory", func(path string) ([]byte, error) {
			link := filepath.Join(os.Getenv("TMPDIR"), fmt.Sprint("dir-", os.Getpid()))
			if err := os.Symlink(filepath.Dir(path), link); err != nil {
				return nil, err
			}
			return os.ReadFile(filepath.Join(link, filepath.Base(path)))
		}},
		{"through /proc/self/root", func(path string) ([]byte, error) { return os.ReadFile("/proc/self/root" + path) }},
		{"through /proc/thread-self/cwd", func(path string) ([]byte, error) {
			if err := os.Chdir(filepath.Dir(path)); err != nil {
				return nil, err
			}
			return os.ReadFile("/proc/thread-self/cwd/" + filepath.Base(path))
		}},
		{"through a descriptor of its directory", func(path string) ([]byte, error) {
			dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return nil, err
			}
			return os.ReadFile(fmt.Sprintf("/dev/fd/%d/%s", dir, filepath.Base(path)))
		}},
		{"through a reference to it", func(path string) ([]byte, error) {
			file, err := unix.Open(path, unix.O_PATH, 0)
			if err != nil {
				return nil, err
			}
			return os.ReadFile(fmt.Sprint("/proc/self/fd/", file))
		}},
		{"through the parent's working directory", func(path string) ([]byte, error) {
			if err := os.Chdir(filepath.Dir(path)); err != nil {
				return nil, err
			}
			return exec.Command("cat", fmt.Sprintf("/proc/%d/cwd/%s", os.Getpid(), filepath.Base(path))).Output()
		}},
		{"with the limits of openat2", func(path string) ([]byte, error) {
			dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return nil, err
			}
			for _, resolve := range []uint64{0, unix.RESOLVE_BENEATH, unix.RESOLVE_IN_ROOT, unix.RESOLVE_NO_SYMLINKS, unix.RESOLVE_NO_XDEV, 0x20} {
				file, openErr := unix.Openat2(dir, filepath.Base(path), &unix.OpenHow{Resolve: resolve})
				if err = openErr; err == nil {
					return os.ReadFile(fmt.Sprint("/proc/self/fd/", file))
				}
			}
			return nil, err
		}},
		{"under a second name", func(path string) ([]byte, error) {
			name := filepath.Join(os.Getenv("TMPDIR"), fmt.Sprint("name-", os.Getpid()))
			if err := os.Link(path, name); err != nil {
				return nil, err
			}
			return os.ReadFile(name)
		}},
		{"with cat", func(path string) ([]byte, error) { return exec.Command("cat", path).Output() }},
		{"with a search", func(path string) ([]byte, error) { return exec.Command("grep", "-r", "", filepath.Dir(path)).Output() }},
		{"while another thread changes the path", readWhileItChanges},
		{"while another thread exchanges a link", readWhileALinkChanges},
	}
	var found []attack
	for _, each := range list {
		found = append(found, attack{at: onSecrets, name: "read a secret file " + each.name, act: func(victim) error {
			return readAnySecret(each.read)
		}})
	}
	return append(found, attack{at: onSecrets, name: "read a secret file with each granted program", act: readWithEachProgram})
}

// readWithEachProgram starts each program of Tier 1 with the paths of all secret files, in forms in which programs read
// files. It returns nil if one prints a secret. What a program prints of files that it opens by itself does not depend
// on the guard.
func readWithEachProgram(victim) error {
	policy, err := guard.ParsePolicy(deploy.Policy)
	if err != nil {
		return err
	}
	dir := filepath.Dir(os.Getenv(hellVariable))
	paths := temptingFiles()
	for i := range paths {
		paths[i] = filepath.Join(dir, paths[i])
	}
	tried := 0
	for _, program := range policy.Executables(1).All() {
		for _, words := range [][]string{paths, append([]string{"", "--"}, paths...), {"-f", paths[0]}, {"-r", "", dir}} {
			const limit = 3 * time.Second // some programs go on until they are stopped
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			command := exec.CommandContext(ctx, program, words...)
			command.Dir, command.WaitDelay = os.Getenv("TMPDIR"), limit
			printed, err := command.CombinedOutput()
			cancel()
			if strings.Contains(string(printed), hellSecret) {
				fmt.Fprintln(os.Stderr, program, words)
				return nil
			}
			if command.Process != nil && (err == nil || command.ProcessState != nil) {
				tried++
			}
		}
	}
	if tried == 0 {
		return nil // nothing is shown by that
	}
	return fmt.Errorf("%d calls showed nothing", tried)
}

// readWhileALinkChanges opens a link while another thread exchanges it for one to a harmless file.
func readWhileALinkChanges(path string) ([]byte, error) {
	links := filepath.Join(os.Getenv("TMPDIR"), fmt.Sprint("exchanged-", os.Getpid()))
	harmless := filepath.Join(filepath.Dir(os.Getenv(hellVariable)), "notes")
	_, _ = os.Remove(links+"a"), os.Remove(links+"b") // of another secret file
	if err := errors.Join(os.Symlink(path, links+"a"), os.Symlink(harmless, links+"b")); err != nil {
		return nil, err
	}
	var over atomic.Bool
	defer over.Store(true)
	go func() {
		runtime.LockOSThread()
		for !over.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, links+"a", unix.AT_FDCWD, links+"b", unix.RENAME_EXCHANGE)
		}
	}()
	const attempts = 500
	for range attempts {
		if content, _ := os.ReadFile(links + "a"); strings.Contains(string(content), hellSecret) {
			return content, nil
		}
	}
	return nil, syscall.EACCES
}

// readAnySecret returns nil if one of the secret files can be read.
func readAnySecret(read func(path string) ([]byte, error)) error {
	var kept error
	for _, name := range temptingFiles() {
		content, err := read(filepath.Join(filepath.Dir(os.Getenv(hellVariable)), name))
		if strings.Contains(string(content), hellSecret) {
			return nil
		}
		kept = errors.Join(kept, fmt.Errorf("%s: %w", name, errors.Join(err, errors.New("it was not shown"))))
	}
	return kept
}

// readWhileItChanges opens a path a thousand times while another thread changes it.
func readWhileItChanges(path string) ([]byte, error) {
	harmless := filepath.Join(filepath.Dir(os.Getenv(hellVariable)), "notes")
	name := make([]byte, unix.PathMax)
	copy(name, harmless)
	var over atomic.Bool
	defer over.Store(true)
	go func() {
		runtime.LockOSThread()
		for !over.Load() {
			copy(name, path+"\x00")
			runtime.Gosched()
			copy(name, harmless+"\x00")
		}
	}()
	const attempts = 1000
	for range attempts {
		here := unix.AT_FDCWD
		file, _, errno := syscall.Syscall6(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(&name[0])), unix.O_RDONLY, 0, 0, 0) //nolint:gosec // a path
		if errno != 0 {
			continue
		}
		content := make([]byte, len(hellSecret))
		n, _ := syscall.Read(int(file), content)
		_ = syscall.Close(int(file))
		if string(content[:max(n, 0)]) == hellSecret {
			return content, nil
		}
	}
	return nil, syscall.EACCES
}
