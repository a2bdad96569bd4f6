package process

import "golang.org/x/sys/unix"

// keptCapabilities returns the capabilities that the programs of the sandbox keep, one bit each. They matter if the
// tree's user is root, or if a program changes the user to root.
//
// The agents of a worker that runs as root own no capability by right: what only root can do is no part of looking at
// a host. They keep the right to read the files of all users, within the rules of Landlock. CAP_NET_RAW in particular
// would show them the packets of the loopback device, and CAP_NET_ADMIN would let them redirect these.
func (s *Sandbox) keptCapabilities() (kept uint64) {
	if s.Setuid { // sudo gives its programs all of root's rights, but for those that lead out of the sandbox
		kept = ^uint64(0)
		for _, number := range outbound() {
			kept &^= 1 << number
		}
		return kept
	}
	kept = 1 << unix.CAP_DAC_OVERRIDE
	if s.Signals {
		kept |= 1 << unix.CAP_KILL
	}
	return kept
}

// outbound returns the capabilities that lead out of a sandbox. They give access to the memory of the kernel and of
// other processes, to raw disks, to other views of the file system, and to the packets of others.
func outbound() []int {
	return []int{
		unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_PTRACE, unix.CAP_SYS_BOOT,
		unix.CAP_SYS_CHROOT, unix.CAP_MKNOD, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_CHECKPOINT_RESTORE,
		unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_NET_RAW, unix.CAP_NET_ADMIN,
	}
}
