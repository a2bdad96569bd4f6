package treeinit

import (
	"syscall"
	"unsafe"
)

// System call numbers that are missing in package syscall. They are the same on amd64 and arm64.
const (
	sysPidfdOpen             = 434
	sysCloseRange            = 436
	sysOpenat2               = 437
	sysPidfdGetfd            = 438
	sysLandlockCreateRuleset = 444
	sysLandlockAddRule       = 445
	sysLandlockRestrictSelf  = 446
)

// Constants of the kernel, named as in golang.org/x/sys/unix. A test compares them with that package.
const (
	atFDCWD           = -100
	oPath             = 0x200000
	atEmptyPath       = 0x1000
	atSymlinkFollow   = 0x400
	tmpFile           = 0x400000 // O_TMPFILE without O_DIRECTORY
	closeRangeCloexec = 0x4

	resolveNoMagicLinks = 0x2
	resolveNoSymlinks   = 0x4
	resolveCached       = 0x20

	seccompModeFilter = 2

	prSetChildSubreaper  = 36
	prSetNoNewPrivs      = 38
	prCapAmbient         = 47
	prCapAmbientClearAll = 4

	linuxCapabilityVersion3 = 0x20080522

	capSetpcap   = 8
	capSysPtrace = 19
	capSysAdmin  = 21

	landlockCreateRulesetVersion = 1
	landlockRulePathBeneath      = 1
	landlockScopeAbstractSocket  = 1 << 0
	landlockScopeSignal          = 1 << 1
)

// Landlock's rights to use files, in the order of their bits.
const (
	accessExecute uint64 = 1 << iota
	accessWriteFile
	accessReadFile
	accessReadDir
	accessRemoveDir
	accessRemoveFile
	accessMakeChar
	accessMakeDir
	accessMakeReg
	accessMakeSock
	accessMakeFifo
	accessMakeBlock
	accessMakeSym
	accessRefer
	accessTruncate
	accessIoctlDev
)

// openHow is the kernel's struct open_how.
type openHow struct{ flags, mode, resolve uint64 }

// rulesetAttributes is the kernel's struct landlock_ruleset_attr.
type rulesetAttributes struct{ handledFS, handledNet, scoped uint64 }

// pathBeneath is the kernel's struct landlock_path_beneath_attr.
type pathBeneath struct {
	allowed uint64
	parent  int32
}

// capabilityHeader is the kernel's struct __user_cap_header_struct.
type capabilityHeader struct {
	version uint32
	pid     int32
}

// capabilityData is the kernel's struct __user_cap_data_struct.
type capabilityData struct{ effective, permitted, inheritable uint32 }

// prctl changes an attribute of the calling thread or process.
func prctl(option int, value uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, uintptr(option), value, 0, 0, 0, 0)
	return failure(errno)
}

// capabilityBounded reports whether a program can still gain the capability. For a capability that this kernel does not
// know, it returns false.
func capabilityBounded(number uint) bool {
	present, _, errno := syscall.Syscall6(syscall.SYS_PRCTL, syscall.PR_CAPBSET_READ, uintptr(number), 0, 0, 0, 0)
	return errno == 0 && present != 0
}

// capget reads the capabilities of the calling thread.
func capget() (data [2]capabilityData, err error) {
	header := capabilityHeader{version: linuxCapabilityVersion3}
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPGET,
		uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0) //nolint:gosec // how the kernel takes a struct
	return data, failure(errno)
}

// capset sets the capabilities of the calling thread.
func capset(data [2]capabilityData) error {
	header := capabilityHeader{version: linuxCapabilityVersion3}
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET,
		uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0) //nolint:gosec // how the kernel takes a struct
	return failure(errno)
}

// closeOnExecFrom sets the close-on-exec flag of all descriptors whose number is at least first.
func closeOnExecFrom(first int) error {
	_, _, errno := syscall.Syscall(sysCloseRange, uintptr(first), uintptr(^uint32(0)), closeRangeCloexec)
	return failure(errno)
}

// duplicate returns a copy of the descriptor. The number of the copy is at least lowest. Programs do not inherit the
// copy.
func duplicate(descriptor, lowest int) (int, error) {
	copied, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(descriptor), syscall.F_DUPFD_CLOEXEC,
		uintptr(lowest))
	return int(copied), failure(errno)
}

// openWithoutLinks opens a reference to the file at path. It fails if a directory of path is a symbolic link.
func openWithoutLinks(path string) (int, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	how := openHow{flags: oPath | syscall.O_CLOEXEC | syscall.O_NOFOLLOW, resolve: resolveNoSymlinks}
	here := atFDCWD
	descriptor, _, errno := syscall.Syscall6(sysOpenat2, uintptr(here),
		uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0) //nolint:gosec // they are structs
	return int(descriptor), failure(errno)
}

// landlockVersion returns the version of Landlock's interface.
func landlockVersion() (int, error) {
	version, _, errno := syscall.Syscall(sysLandlockCreateRuleset, 0, 0, landlockCreateRulesetVersion)
	return int(version), failure(errno)
}

// createRuleset returns the descriptor of an empty ruleset.
func createRuleset(attributes *rulesetAttributes) (int, error) {
	descriptor, _, errno := syscall.Syscall(sysLandlockCreateRuleset,
		uintptr(unsafe.Pointer(attributes)), unsafe.Sizeof(*attributes), 0) //nolint:gosec // how the kernel takes a struct
	return int(descriptor), failure(errno)
}

// addRule adds a rule to a ruleset. The first parameter is the descriptor of the ruleset.
func addRule(ruleset int, rule *pathBeneath) error {
	_, _, errno := syscall.Syscall6(sysLandlockAddRule, uintptr(ruleset), landlockRulePathBeneath,
		uintptr(unsafe.Pointer(rule)), 0, 0, 0) //nolint:gosec // how the kernel takes a struct
	return failure(errno)
}

// restrictSelf applies the ruleset to the calling thread.
func restrictSelf(ruleset int) error {
	_, _, errno := syscall.Syscall(sysLandlockRestrictSelf, uintptr(ruleset), 0, 0)
	return failure(errno)
}

// failure returns errno as an error; nil if there is no error.
func failure(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// failed returns an error with the name of the failed operation and the reason.
func failed(what string, err error) error { return &operationError{what, err} }

// operationError is the type of the errors that failed returns. Package fmt is not used, because it is initialized too
// late.
type operationError struct {
	what  string
	cause error
}

// Error implements error.
func (e *operationError) Error() string { return e.what + ": " + e.cause.Error() }

// Unwrap returns the cause.
func (e *operationError) Unwrap() error { return e.cause }
