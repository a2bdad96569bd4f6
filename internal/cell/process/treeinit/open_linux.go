package treeinit

import (
	"errors"
	"syscall"
	"unsafe"
)

// A launcher installs a filter that makes the kernel ask this process before the programs of the tree open or move a
// file (seccomp_unotify(2)). The answerer finds the file that the path names at that moment, judges its real path, and
// gives the program this very file. So neither options nor links nor a second thread of the program can make it another
// file. While nobody answers, the program waits; when the init has ended, its calls fail.

// notification is the kernel's struct seccomp_notif: a call that waits for its answer.
type notification struct {
	id        uint64
	thread    uint32
	flags     uint32
	number    int32
	arch      uint32
	position  uint64
	arguments [6]uint64
}

// notificationAnswer is the kernel's struct seccomp_notif_resp.
type notificationAnswer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// givenFile is the kernel's struct seccomp_notif_addfd.
type givenFile struct {
	id                uint64
	flags             uint32
	source            uint32
	target            uint32
	targetDescriptors uint32
}

// The ioctl requests of a listener, and their flags.
const (
	notifReceive  = 0xc0502100
	notifSend     = 0xc0182101
	notifIDValid  = 0x40082102
	notifAddFD    = 0x40182103
	notifSetFlags = 0x40082104

	syncWakeUp = 1 << 0
)

// Refused is a call that the answerer has refused.
type Refused struct {
	// Path is the real path of the file, or the address.
	Path string
	// Program is the path of the program's executable.
	Program string
	// Write reports that the program wanted to change the file, and Connect that it wanted to connect.
	Write, Connect bool
	// Reason says why.
	Reason string
}

// answerer judges the calls of one tree.
type answerer struct {
	listener int
	rules    *fileRules
	sandbox  *Sandbox
	user     *User
	turn     turn
	waiting  waitingCalls
	// reports passes what is refused to the reporter.
	reports chan Refused
}

// maxReports limits the files that are reported for a tree.
const maxReports = 500

// tell reports refused files, each once: a search can ask for one a thousand times. It receives the next one after the
// report.
func (in *initProcess) tell(reports <-chan Refused) {
	told := map[Refused]bool{{}: true}
	for refused := range reports {
		if !told[refused] && len(told) < maxReports {
			told[refused] = true
			in.report(Answer{Kind: AnswerFileRefused, File: refused})
		}
	}
}

// answer answers the calls for which the kernel asks, until the tree has ended.
func (in *initProcess) answer(listener int, j Job) {
	a := &answerer{
		listener: listener, rules: newFileRules(j.Sandbox), sandbox: j.Sandbox, user: j.User,
		reports: make(chan Refused),
	}
	ownDescriptors, _ = openAt2(atFDCWD, "/proc/self/fd",
		openHow{flags: oPath | syscall.O_DIRECTORY | syscall.O_CLOEXEC})
	go in.tell(a.reports)
	// It saves half of the time between two programs on one processor. Kernels before 6.6 do not know it.
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, uintptr(listener), notifSetFlags, syncWakeUp)
	go a.answerFirst()
}

// ioctl makes a request that does not wait.
func ioctl(descriptor int, request uintptr, argument unsafe.Pointer) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(descriptor), request, uintptr(argument))
	return errno
}

// unchanged stands for a user or group that a call leaves as it is.
const unchanged = ^uintptr(0)

// becomeAgent gives the calling thread the rights to files and connections that the programs of the tree have, with a
// mask for new files of its own. The other side of a connection sees the agent's user. The thread keeps its real and
// its saved user, so that no program of the tree can send it a signal.
func (a *answerer) becomeAgent() error {
	if err := syscall.Unshare(syscall.CLONE_FS); err != nil {
		return err
	}
	syscall.Umask(0)
	if u := a.user; u != nil {
		groups := make([]uint32, len(u.Groups)+1)
		for i, group := range u.Groups {
			groups[i] = uint32(group) //nolint:gosec // a group's number
		}
		// The calls concern this thread only, unlike those of package syscall. Signals are a matter of the other two
		// users of the thread.
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETGROUPS,
			uintptr(len(u.Groups)), uintptr(unsafe.Pointer(&groups[0])), 0) //nolint:gosec // how the kernel takes a list
		if errno == 0 {
			_, _, errno = syscall.RawSyscall(syscall.SYS_SETRESGID, unchanged, uintptr(u.GID), unchanged)
		}
		if errno == 0 {
			_, _, errno = syscall.RawSyscall(syscall.SYS_SETRESUID, unchanged, uintptr(u.UID), unchanged)
		}
		if errno != 0 {
			return errno
		}
	}
	data, err := capget()
	if err != nil {
		return err
	}
	kept := a.sandbox.Capabilities
	if a.user != nil && a.user.UID != superuser {
		kept = 0
	}
	data[0].effective &= uint32(kept)
	data[1].effective &= uint32(kept >> 32)
	return capset(data)
}

// judge answers one call, or has it wait.
func (a *answerer) judge(asked *notification) {
	c := &call{answerer: a, asked: asked, caller: &caller{thread: int(asked.thread)}}
	if err := c.judge(); !errors.Is(err, errWaits) {
		c.answer(err)
	}
}

// call is a call that waits for its answer.
type call struct {
	*answerer
	asked  *notification
	caller *caller
}

// judge carries out a call. It returns the error of the call; nil if the call has succeeded, errAnswered if it has its
// answer, and errWaits if it gets one later.
func (c *call) judge() error {
	args := c.asked.arguments
	// The kernel, too, takes the lower halves of descriptors, flags and modes.
	dir := func(at int) int { return int(int32(args[at])) } //nolint:gosec // as above
	flags := func(at int) uint64 { return args[at] & (1<<32 - 1) }
	switch c.asked.number {
	case syscall.SYS_OPENAT:
		return c.open(dir(0), args[1], openHow{flags: flags(2), mode: flags(3)})
	case sysOpenat2:
		return c.open2(dir(0), args[1], args[2], args[3])
	case syscall.SYS_RENAMEAT:
		return c.rename(dir(0), args[1], dir(2), args[3], 0)
	case sysRenameat2:
		return c.rename(dir(0), args[1], dir(2), args[3], flags(4))
	case syscall.SYS_LINKAT:
		return c.link(dir(0), args[1], dir(2), args[3], flags(4))
	case syscall.SYS_SYMLINKAT:
		return c.symlink(args[0], dir(1), args[2])
	case syscall.SYS_UNLINKAT:
		return c.unlink(dir(0), args[1], flags(2))
	case syscall.SYS_MKDIRAT:
		return c.create(dir(0), args[1], flags(2)&^syscall.S_IFMT|syscall.S_IFDIR)
	case syscall.SYS_MKNODAT:
		return c.createNode(dir(0), args[1], flags(2))
	case syscall.SYS_CONNECT:
		return c.connect(dir(0), args[1], dir(2))
	case syscall.SYS_TRUNCATE:
		return c.truncate(args[0], int64(args[1])) //nolint:gosec // the kernel's type
	}
	return c.judgeOld()
}

// answer tells the kernel the outcome of a call.
func (c *call) answer(err error) {
	if errors.Is(err, errAnswered) {
		return
	}
	reply := notificationAnswer{id: c.asked.id}
	if err != nil {
		errno := syscall.EACCES
		_ = errors.As(err, &errno)
		reply.errno = -int32(errno)
	}
	_ = ioctl(c.listener, notifSend, unsafe.Pointer(&reply)) //nolint:gosec // how the kernel takes a struct
}

// errAnswered means that the call has its answer.
var errAnswered = errors.New("answered")

// valid reports whether the caller still waits for the answer.
func (c *call) valid() bool {
	id := c.asked.id
	return ioctl(c.listener, notifIDValid, unsafe.Pointer(&id)) == 0 //nolint:gosec // how the kernel takes a number
}
