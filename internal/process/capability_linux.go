package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// capabilities are a set of the superuser's powers.
type capabilities uint64

func (c capabilities) has(number uint) bool { return c&(1<<number) != 0 }

// effectiveCapabilities returns those that the calling thread can use.
func effectiveCapabilities() (capabilities, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("read the capabilities: %w", err)
	}
	return capabilities(data[0].Effective) | capabilities(data[1].Effective)<<32, nil
}

// dangerous are the capabilities that would lead around a sandbox: to the kernel's and other processes' memory,
// to disks without their files, and to other views of the file system.
func dangerous() []uint {
	return []uint{
		unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_PTRACE, unix.CAP_SYS_BOOT,
		unix.CAP_MKNOD, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_CHECKPOINT_RESTORE, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE,
	}
}

// dropDangerous takes the dangerous capabilities from every program that the calling thread becomes or starts. Who
// may not do that has none of them to pass on.
func dropDangerous() error {
	held, err := effectiveCapabilities()
	if err != nil || !held.has(unix.CAP_SETPCAP) {
		return err
	}
	for _, number := range dangerous() {
		present, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(number), 0, 0, 0)
		if err != nil || present == 0 { // this kernel does not know it, or it is gone
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(number), 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", number, err)
		}
	}
	return nil
}

// dropAmbient keeps a program of another user from inheriting capabilities.
func dropAmbient() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop the ambient capabilities: %w", err)
	}
	return nil
}
