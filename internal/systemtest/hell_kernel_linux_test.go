package systemtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAttacks returns attacks that use system calls which Landlock does not know.
func kernelAttacks() []attack {
	return []attack{
		{at: onProcesses, name: "limit the worker's processor time", act: limitWorker(unix.RLIMIT_CPU)},
		{at: onProcesses, name: "take the worker's descriptors", act: limitWorker(unix.RLIMIT_NOFILE)},
		{at: onProcesses, name: "limit the worker's memory", act: limitWorker(unix.RLIMIT_AS)},
		{at: onProcesses, name: "take the init's descriptors", act: func(victim) error {
			init, err := parentOf(os.Getppid())
			return errors.Join(err, limit(init, unix.RLIMIT_NOFILE))
		}},
		{at: onProcesses, name: "read the worker's limits", act: func(v victim) error {
			var now unix.Rlimit
			return prlimit(v.Worker, unix.RLIMIT_CPU, nil, &now)
		}},
		{at: onProcesses, name: "keep the worker on one processor", act: func(v victim) error {
			var now unix.CPUSet
			return errors.Join(unix.SchedGetaffinity(v.Worker, &now), unix.SchedSetaffinity(v.Worker, &now))
		}},
		{at: onProcesses, name: "schedule the worker", act: func(v victim) error {
			return unix.SchedSetAttr(v.Worker, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0)
		}},
		{at: onProcesses, name: "schedule the worker by the older call", act: func(v victim) error {
			const normal = 0
			var priority int32
			return call(unix.SYS_SCHED_SETSCHEDULER, uintptr(v.Worker), normal, uintptr(unsafe.Pointer(&priority))) //nolint:gosec // how the kernel takes it
		}},
		{at: onProcesses, name: "set the worker's priority", act: func(v victim) error { return setPriority(unix.PRIO_PROCESS, v.Worker) }},
		{at: onProcesses, name: "set the priority of the worker's group", act: func(v victim) error {
			group, err := unix.Getpgid(v.Worker)
			return errors.Join(err, setPriority(unix.PRIO_PGRP, group))
		}},
		{at: onProcesses, name: "set the priority of the whole user", act: func(victim) error { return setPriority(unix.PRIO_USER, 0) }},
		{at: onProcesses, name: "set the priority of the worker's disk", act: func(v victim) error {
			const process, normal = 1, 2<<13 | 4
			return call(unix.SYS_IOPRIO_SET, process, uintptr(v.Worker), normal)
		}},
		{at: onProcesses, name: "trace the worker", act: func(v victim) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(v.Worker), 0) }},
		{at: onKernel, name: "trace its own children", act: func(victim) error { return call(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0) }},
		{at: onProcesses, name: "read the worker's memory", act: readWorkersMemory},
		{at: onProcesses, name: "compare the worker's memory", act: func(v victim) error {
			return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(v.Worker), 1, 0, 0)
		}},
		{at: onProcesses, name: "take a descriptor of the worker", act: func(v victim) error {
			pidfd, err := unix.PidfdOpen(v.Worker, 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(pidfd, 0, 0)
			return err
		}},
		{at: onKernel, name: "use the kernel's keys", act: func(victim) error {
			_, err := unix.AddKey("user", "hell", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},
		{at: onKernel, name: "list the kernel's keys", act: func(victim) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
			return err
		}},
		{at: onKernel, name: "load a program into the kernel", act: func(victim) error {
			// A map of one entry: the kernel refuses the call by its rights, not by its form.
			attributes := [18]uint32{2 /* array */, 4, 4, 1}
			return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes)) //nolint:gosec // how the kernel takes it
		}},
		{at: onKernel, name: "measure the kernel", act: func(victim) error {
			_, err := unix.PerfEventOpen(&unix.PerfEventAttr{
				Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
				Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
			}, 0, -1, -1, 0)
			return err
		}},
		{at: onKernel, name: "handle the faults of memory", act: func(victim) error {
			const userModeOnly = 1
			return call(unix.SYS_USERFAULTFD, userModeOnly)
		}},
		{at: onKernel, name: "hand system calls to the kernel's ring", act: func(victim) error {
			var parameters [30]uint32
			return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters))) //nolint:gosec // how the kernel takes it
		}},
		{at: onKernel, name: "have a user namespace", act: func(victim) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }},
		{at: onKernel, name: "have a mount namespace", act: func(victim) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWNS) }},
		{at: onKernel, name: "have a network namespace", act: func(victim) error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWNET) }},
		{at: onKernel, name: "start a program in a user namespace", act: func(victim) error {
			return cloneInto(unix.CLONE_NEWUSER)
		}},
		{at: onProcesses, name: "enter the worker's namespaces", act: func(v victim) error {
			pidfd, err := unix.PidfdOpen(v.Worker, 0)
			return errors.Join(err, unix.Setns(pidfd, unix.CLONE_NEWNET))
		}},
		{at: onKernel, name: "mount", act: func(v victim) error { return unix.Mount("none", v.Home, "tmpfs", 0, "") }},
		{at: onKernel, name: "mount by the newer calls", act: func(victim) error {
			_, err := unix.Fsopen("tmpfs", 0)
			return err
		}},
		{at: onKernel, name: "change the root", act: func(victim) error { return unix.Chroot("/") }},
		{at: onKernel, name: "open a file by its handle", act: func(victim) error {
			handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, "/", 0)
			if err != nil {
				return err
			}
			root, err := unix.Open("/", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			_, err = unix.OpenByHandleAt(root, handle, unix.O_RDONLY)
			return err
		}},
		{at: onKernel, name: "make the system calls of 32-bit programs", act: oldSystemCall},
		{at: onKernel, name: "make the system calls of x32 programs", act: func(victim) error { return call(1<<30 | unix.SYS_GETPID) }},
	}
}

// limitWorker returns an attack that takes a resource from the worker.
func limitWorker(resource int) func(victim) error {
	return func(v victim) error { return limit(v.Worker, resource) }
}

// limit sets a limit of a process to its present value. That needs the same right as a lower value, and harms no test.
func limit(pid, resource int) error {
	var now unix.Rlimit
	if err := prlimit(pid, resource, nil, &now); err != nil {
		return err
	}
	return prlimit(pid, resource, &now, nil)
}

// setPriority sets a priority to its present value.
func setPriority(which, who int) error {
	now, err := unix.Getpriority(which, who)
	if err != nil {
		return err
	}
	return unix.Setpriority(which, who, 20-now) // the call to read returns 20 less the value
}

func prlimit(pid, resource int, next, now *unix.Rlimit) error {
	return call(unix.SYS_PRLIMIT64, uintptr(pid), uintptr(resource),
		uintptr(unsafe.Pointer(next)), uintptr(unsafe.Pointer(now))) //nolint:gosec // how the kernel takes it
}

// call makes a system call.
//
//go:uintptrescapes
func call(number uintptr, arguments ...uintptr) error {
	var all [6]uintptr
	copy(all[:], arguments)
	if _, _, errno := unix.Syscall6(number, all[0], all[1], all[2], all[3], all[4], all[5]); errno != 0 {
		return errno
	}
	return nil
}

// parentOf returns the parent of a process.
func parentOf(pid int) (parent int, err error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(string(line[bytes.LastIndexByte(line, ')')+4:]), "%d", &parent)
	return parent, err
}

// readWorkersMemory reads a word of the worker's program, whose address the map of this program tells.
func readWorkersMemory(v victim) error {
	var word [8]byte
	own := []unix.Iovec{{Base: &word[0], Len: 8}}
	_, err := unix.ProcessVMReadv(v.Worker, own, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil // it may read, but nothing is there
	}
	return err
}

// oldSystemCall makes a system call as a 32-bit program does. A filter that knows only the numbers of this architecture
// would let all of these calls pass.
func oldSystemCall(victim) error {
	if runtime.GOARCH != "amd64" {
		return errors.New("this architecture has no such calls here")
	}
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	// mov eax, 20 (getpid); int 0x80; ret
	copy(code, []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3})
	entry := &code[0]
	function := &entry
	getpid := *(*func() int32)(unsafe.Pointer(&function)) //nolint:gosec // the form of a function in memory
	if number := getpid(); number < 0 {
		return unix.Errno(-number)
	}
	return nil
}

// cloneInto starts a child in new namespaces. The child ends at once.
func cloneInto(flags uintptr) error {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		for {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}
