package process_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// openRace is a variable that makes the test binary try to open a secret file while another thread changes what the
// path names. The value is a key of openRaces.
const openRace = "PROCESS_TEST_OPEN_RACE"

// openRaces maps the names of races to what the other thread does until the function over returns true. The program
// opens the path that path holds meanwhile.
func openRaces() map[string]func(path []byte, over func() bool) {
	swap := func(from, to string) {
		_ = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	}
	return map[string]func([]byte, func() bool){
		"the path in memory": func(path []byte, over func() bool) {
			for !over() {
				copy(path, ".env\x00")
				_ = over()
				copy(path, "notes\x00")
			}
		},
		"a link": func(path []byte, over func() bool) {
			copy(path, "l\x00")
			_, _ = os.Symlink(".env", "m"), os.Symlink("notes", "l")
			for !over() {
				swap("l", "m")
			}
		},
		"a link to a directory": func(path []byte, over func() bool) {
			copy(path, "l/token\x00")
			_, _, _ = os.Mkdir("public", 0o750), os.Symlink("secrets", "m"), os.Symlink("public", "l")
			_ = os.WriteFile("public/token", []byte("notes\n"), 0o600)
			for !over() {
				swap("l", "m")
			}
		},
		"a file and a link": func(path []byte, over func() bool) {
			copy(path, "l\x00")
			_, _ = os.Symlink(".env", "m"), os.WriteFile("l", []byte("notes\n"), 0o600)
			for !over() {
				swap("l", "m")
			}
		},
		"a missing file and a link": func(path []byte, over func() bool) {
			copy(path, "l\x00")
			_ = os.Symlink(".env", "m")
			for !over() {
				_ = os.Rename("m", "l")
				_ = os.Rename("l", "m")
			}
		},
		"the working directory": func(path []byte, over func() bool) {
			copy(path, "token\x00")
			_ = os.Mkdir("public", 0o750)
			_ = os.WriteFile("public/token", []byte("notes\n"), 0o600)
			for !over() {
				_, _, _, _ = os.Chdir("public"), os.Chdir(".."), os.Chdir("secrets"), os.Chdir("..")
			}
		},
	}
}

// raceToOpen opens the path to read and to write, until it has met both the secret file and the other often. It prints
// what it has read.
func raceToOpen() int {
	path := make([]byte, 64)
	copy(path, "notes\x00")
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		openRaces()[os.Getenv(openRace)](path, over.Load)
	}()
	const often, limit = 300, 5_000_000
	opened, refused, read := 0, 0, map[string]bool{}
	for at := 0; at < limit && (opened < often || refused < often && !read[hiddenText]); at++ {
		flags := []uintptr{unix.O_RDONLY, unix.O_RDWR | unix.O_CREAT, unix.O_RDWR}[at%3]
		here := unix.AT_FDCWD
		file, _, errno := syscall.Syscall6(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(&path[0])), flags, 0o600, 0, 0) //nolint:gosec // a path
		if errno == syscall.EACCES {
			refused++
		}
		if errno != 0 {
			continue
		}
		opened++
		buffer := make([]byte, 100)
		if n, err := syscall.Read(int(file), buffer); err == nil {
			read[string(bytes.TrimSpace(buffer[:n]))] = true
		}
		_ = syscall.Close(int(file))
	}
	over.Store(true)
	<-ended
	fmt.Println("opened", opened > 0, read)
	return 0
}

// TestOpensRaces runs a program whose threads change what a path names while it is judged. It reads a secret without
// judging only.
func TestOpensRaces(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	program, err := os.Executable()
	require.NoError(t, err)
	for name := range openRaces() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, judge := range []bool{true, false} {
				s := newSite(t)
				s.secretsIn(t)
				sandbox := s.judged()
				if !judge {
					sandbox.Opens = nil
				}
				spec := shell(t, process.ModeSubreaper, "cd "+s.workspace+" && exec "+program)
				spec.Env, spec.Sandbox = append(spec.Env, openRace+"="+name), sandbox
				_, printed := run(t, t.Context(), spec)
				require.Contains(t, printed, "opened true")
				if judge {
					require.NotContains(t, printed, hiddenText)
				} else {
					require.Contains(t, printed, hiddenText)
				}
			}
		})
	}
}

// TestOpensGivesNoDescriptorOfTheInit checks that a path below /proc/self is the caller's, with every limit of openat2.
func TestOpensGivesNoDescriptorOfTheInit(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	s := newSite(t)
	s.secretsIn(t)
	script := `cd ` + s.workspace + `; exec perl -e 'for $r (0, 1, 2, 4, 8, 16, 32) { for $n (3..80) { for $d ("/proc/self", "/proc/thread-self", "/dev") {
		$p = "$d/fd/$n\0"; $h = pack("QQQ", 0x802, 0, $r); print "$p $r\n" if syscall(437, -100, $p, $h, 24) >= 0 } } }
		$p = "notes\0"; $h = pack("QQQ", 0, 0, 0); print syscall(437, -100, $p, $h, 24) > 0 ? "end\n" : "$!\n"'`
	_, printed := inside(t, process.ModeSubreaper, s.judged(), script)
	require.Equal(t, "end\n", printed)
}

// TestOpensAsAnotherUser checks the judging of files for a program of another user, whose memory the init reads in
// another way.
func TestOpensAsAnotherUser(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	if os.Geteuid() != 0 {
		t.Skip("only the superuser starts programs of others")
	}
	root := openDir(t)
	s := site{root: root, state: root + "/state", workspace: root + "/state/work"}
	s.secretsIn(t)
	for _, dir := range []string{s.state, s.workspace, s.workspace + "/sub"} {
		require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // for the other user
	}
	spec := shell(t, process.ModeSubreaper, "cd "+s.workspace+`; cat .env notes; echo x > made; stat -c %u made; cat sub/../.env; : > /etc/x; cat /etc/shadow; mv .env y; cat y`)
	spec.Sandbox, spec.User = s.judged(), otherUser()
	_, printed := run(t, t.Context(), spec)
	require.Equal(t, fmt.Sprintf("notes\n%d\n", nobody), printed)
}

// TestOpensInALimitedThread checks that a program whose files are judged can start another with a limit on what that
// executes. Without judging, it hides itself meanwhile, and nobody could read from its memory which file it wants to
// open.
func TestOpensInALimitedThread(t *testing.T) {
	t.Parallel()
	requireOpens(t)
	s := newSite(t)
	inner := strings.Join(filesOf(t, "/bin/ls"), ",")
	ls, cat := []string{limited, inner, "/bin/ls"}, []string{limited, inner, "/bin/cat", "/dev/null"}
	spec := executor(t, process.ModeSubreaper, ls, cat)
	spec.Sandbox = s.judged()
	spec.Sandbox.Executable = filesOf(t, os.Args[0], "/bin/ls", "/bin/cat")
	_, printed := run(t, t.Context(), spec)
	require.Equal(t, strings.Join(ls, " ")+": "+executed+"\n"+strings.Join(cat, " ")+": "+denied+"\n", printed)
}
