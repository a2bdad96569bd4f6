package process

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// minABI is the first version of Landlock's interface that can grant the right to move files between directories.
	// Git needs that right in its own directory.
	minABI = 2
	// deviceDir also contains disks and memory, so only the entries that devices lists are granted.
	deviceDir = "/dev"
)

// The rights of Landlock, grouped by use.
const (
	readFileRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	readRights      = readFileRights | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeFileRights = readFileRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// writeRights exclude the creation of devices, because the superuser could create one for any disk.
	writeRights = writeFileRights | readRights | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// deviceRights include the ioctl right, which terminals need.
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// devices lists the devices that every tree may use. /dev/fd, /dev/stdin and the like are links to /proc.
func devices() []string {
	return []string{
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts",
	}
}

// handledRights returns the rights that a sandbox withholds unless it grants them, for this version of Landlock's
// interface. A sandbox does not withhold the rights to use the network and to connect to sockets by path.
func handledRights(abi int) uint64 {
	rights := uint64(unix.LANDLOCK_ACCESS_FS_REFER<<1 - 1)
	if abi >= 3 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// missing says which rights a kernel with this version of the interface cannot withhold. It returns "" if there are
// none.
func missing(abi int) string {
	switch {
	case abi < 3:
		return "this kernel can neither withhold signals nor the truncation of files"
	case abi < 6:
		return "this kernel cannot withhold signals"
	}
	return ""
}

// landlockABI returns this kernel's version of Landlock's interface, or an error if Landlock is not usable.
func landlockABI() (int, error) {
	abi, err := landlockVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return 0, errors.New("this kernel has no Landlock, which came with Linux 5.13")
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, errors.New("this kernel has Landlock switched off; add landlock to its lsm= parameter")
	case err != nil:
		return 0, fmt.Errorf("this system refuses Landlock: %w", err)
	case abi < minABI:
		return 0, fmt.Errorf("the Landlock of this kernel is too old (ABI %d); it takes Linux 5.19", abi)
	}
	return abi, nil
}

// ruleset is a Landlock ruleset that is not enforced yet.
type ruleset struct {
	descriptor int
	handled    uint64
}

// newRuleset creates a ruleset with the grants of s. remark names the rights that it cannot withhold, and the
// directories that it cannot grant.
func (s *Sandbox) newRuleset(abi int) (rules ruleset, remark string, err error) {
	attributes := unix.LandlockRulesetAttr{Handled_access_fs: handledRights(abi)}
	if abi >= 6 {
		attributes.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		if !s.Signals {
			attributes.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
	}
	rules = ruleset{handled: attributes.Handled_access_fs}
	if rules.descriptor, err = createRuleset(&attributes); err != nil {
		return rules, "", fmt.Errorf("create a Landlock ruleset: %w", err)
	}
	granted := s.grantsOf()
	if err := rules.fill(granted); err != nil {
		_ = unix.Close(rules.descriptor)
		return rules, "", err
	}
	remarks := strings.Trim(missing(abi)+"; "+granted.remark(), "; ")
	return rules, remarks, nil
}

// fill adds the rules. They permit listing every directory, because df, du and ls need the names. Names alone are not
// secret. And no rule could prevent a program from testing whether a name exists.
func (r ruleset) fill(granted *grants) error {
	err := r.allow("/", unix.LANDLOCK_ACCESS_FS_READ_DIR)
	for _, path := range devices() {
		err = errors.Join(err, r.allow(path, deviceRights))
	}
	for _, g := range granted.list {
		rights := uint64(readRights)
		if g.write {
			rights = writeRights
		}
		err = errors.Join(err, r.allow(g.path, rights))
	}
	return err
}

// allow adds a rule for path. It adds no rule if path cannot be opened, for example because it does not exist, or if a
// part of path is a symbolic link. So an agent cannot redirect a rule by a link.
func (r ruleset) allow(path string, rights uint64) error {
	descriptor, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil // not granted
	}
	defer func() { _ = unix.Close(descriptor) }()
	var info unix.Stat_t
	if err := unix.Fstat(descriptor, &info); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFDIR:
	default:
		rights &= writeFileRights | deviceRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(descriptor)} //nolint:gosec // small
	if err := r.add(&rule); err != nil {
		return fmt.Errorf("grant %s: %w", path, err)
	}
	return nil
}

// enforce applies the ruleset to the calling thread, and to the program that it executes.
func (r ruleset) enforce() error {
	if err := r.restrictSelf(); err != nil {
		return fmt.Errorf("enforce a Landlock ruleset: %w", err)
	}
	return nil
}

// confine puts the calling thread, and the program that it executes, into the sandbox. target is the number of the user
// that the program will run as.
func (s *Sandbox) confine(target int) Sandboxed {
	abi, err := landlockABI()
	if err != nil {
		return Sandboxed{Remark: err.Error()}
	}
	held, err := effectiveCapabilities()
	if err != nil {
		return Sandboxed{Remark: err.Error()}
	}
	// Without CAP_SYS_ADMIN the kernel requires no_new_privs. Under no_new_privs no program can gain rights.
	privileged := held.has(unix.CAP_SYS_ADMIN)
	if s.Setuid && !privileged && target != superuser {
		return Sandboxed{Remark: "it would keep sudo from working, which the tier's rules grant, unless this worker has CAP_SYS_ADMIN"}
	}
	rules, remark, err := s.newRuleset(abi)
	if err != nil {
		return Sandboxed{Remark: err.Error()}
	}
	if !s.Setuid || !privileged {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return Sandboxed{Remark: fmt.Sprintf("set no_new_privs: %v", err)}
		}
	}
	if err := errors.Join(dropDangerous(), rules.enforce()); err != nil {
		return Sandboxed{Remark: err.Error()}
	}
	_ = unix.Close(rules.descriptor)
	return Sandboxed{ABI: abi, Remark: remark}
}

// Landlock's system calls. golang.org/x/sys/unix has their numbers, types and constants, but no functions. The go-landlock
// module has functions, but imports a package that delays the start of an init (see the init function).

// landlockVersion returns the version of Landlock's interface.
func landlockVersion() (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return int(version), failure(errno)
}

// createRuleset returns the descriptor of an empty ruleset.
func createRuleset(attributes *unix.LandlockRulesetAttr) (int, error) {
	descriptor, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(attributes)), unsafe.Sizeof(*attributes), 0) //nolint:gosec // how the kernel takes a struct
	return int(descriptor), failure(errno)
}

// add adds a rule.
func (r ruleset) add(rule *unix.LandlockPathBeneathAttr) error {
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.descriptor), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(rule)), 0, 0, 0) //nolint:gosec // how the kernel takes a struct
	return failure(errno)
}

// restrictSelf applies the ruleset to the calling thread.
func (r ruleset) restrictSelf() error {
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.descriptor), 0, 0)
	return failure(errno)
}

// failure returns errno as an error; nil for none.
func failure(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// superuser is the user number of root.
const superuser = 0

// currentUser returns the number of the user that this process runs as.
func currentUser() int { return os.Geteuid() }
