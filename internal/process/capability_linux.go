package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// capabilities is a set of Linux capabilities, one bit each.
type capabilities uint64

func (c capabilities) has(number uint) bool { return c&(1<<number) != 0 }

// effectiveCapabilities returns the capabilities that the calling thread can use.
func effectiveCapabilities() (capabilities, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("read the capabilities: %w", err)
	}
	return capabilities(data[0].Effective) | capabilities(data[1].Effective)<<32, nil
}

// dangerous returns the capabilities that would bypass a sandbox: they give access to the memory of the kernel and of
// other processes, to raw disks, and to other mounts of the file system.
func dangerous() []uint {
	return []uint{
		unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_PTRACE, unix.CAP_SYS_BOOT,
		unix.CAP_MKNOD, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE,
	}
}

// dropDangerous removes the dangerous capabilities from every program that the calling thread executes or starts.
// Without CAP_SETPCAP a thread may not do so. dropDangerous then does nothing and assumes that the thread has no
// dangerous capabilities to pass on.
func dropDangerous() error {
	held, err := effectiveCapabilities()
	if err != nil || !held.has(unix.CAP_SETPCAP) {
		return err
	}
	for _, number := range dangerous() {
		present, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(number), 0, 0, 0)
		if err != nil || present == 0 { // unknown to this kernel, or dropped already
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(number), 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", number, err)
		}
	}
	return nil
}

// dropAmbient clears the ambient capabilities, so that a program of another user does not inherit them.
func dropAmbient() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop the ambient capabilities: %w", err)
	}
	return nil
}
