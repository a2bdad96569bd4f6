package treeinit

import (
	"strconv"
	"syscall"
)

// capabilities is a set of Linux capabilities, one bit each.
type capabilities uint64

func (c capabilities) has(number uint) bool { return c&(1<<number) != 0 }

// effectiveCapabilities returns the capabilities that the calling thread can use.
func effectiveCapabilities() (capabilities, error) {
	data, err := capget()
	if err != nil {
		return 0, failed("read the capabilities", err)
	}
	return capabilities(data[0].effective) | capabilities(data[1].effective)<<32, nil
}

// dangerous returns the capabilities that would bypass a sandbox. They give access to the memory of the kernel and of
// other processes, to raw disks, and to other mounts of the file system.
func dangerous() []uint {
	return []uint{
		capSysAdmin, capSysModule, capSysRawio, capSysPtrace, capSysBoot,
		capMknod, capBPF, capPerfmon, capCheckpointRestore, capMacAdmin, capMacOverride,
	}
}

// dropDangerous makes sure that no program has dangerous capabilities if the calling thread executes or starts it.
// Without CAP_SETPCAP the thread may not remove capabilities. In that case dropDangerous does nothing, and assumes that
// the thread has no dangerous capabilities.
func dropDangerous() error {
	held, err := effectiveCapabilities()
	if err != nil || !held.has(capSetpcap) {
		return err
	}
	for _, number := range dangerous() {
		if !capabilityBounded(number) { // unknown to this kernel, or dropped already
			continue
		}
		if err := prctl(syscall.PR_CAPBSET_DROP, uintptr(number)); err != nil {
			return failed("drop capability "+strconv.Itoa(int(number)), err)
		}
	}
	return nil
}

// dropAmbient clears the ambient capabilities, so that a program of another user does not inherit them.
func dropAmbient() error {
	if err := prctl(prCapAmbient, prCapAmbientClearAll); err != nil {
		return failed("drop the ambient capabilities", err)
	}
	return nil
}
