package treeinit

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// minABI is the first version of Landlock's interface that can grant moves of files between directories. Git makes such
// moves in its own directory.
const minABI = 2

// The rights of Landlock, grouped by use.
const (
	readFileRights  = accessExecute | accessReadFile
	readRights      = readFileRights | accessReadDir
	writeFileRights = readFileRights | accessWriteFile | accessTruncate
	// writeRights holds the rights to write. It excludes the right to create devices, because the superuser could
	// create a device for any disk.
	writeRights = writeFileRights | readRights | accessRemoveDir | accessRemoveFile | accessMakeDir | accessMakeReg |
		accessMakeSock | accessMakeFifo | accessMakeSym | accessRefer
	// deviceRights holds the rights on devices. It includes the ioctl right, which /dev/urandom and /dev/tty need.
	deviceRights = accessReadFile | accessWriteFile | accessTruncate | accessIoctlDev
)

// devices lists the devices that every tree may use. /dev/fd, /dev/stdin and similar paths are links to /proc.
// Terminals are missing: the file system of /dev/pts shows those of everybody, and an agent could ask for a password on
// one of them. /dev/tty is a tree's own terminal, if it ever has one.
func devices() []string {
	return []string{
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
	}
}

// handledRights returns the rights that a sandbox withholds unless a rule grants them. The parameter abi is the version
// of Landlock's interface. A sandbox does not withhold the rights to use the network and to connect to sockets by path.
func handledRights(abi int) uint64 {
	rights := accessRefer<<1 - 1
	if abi >= 3 {
		rights |= accessTruncate
	}
	if abi >= 5 {
		rights |= accessIoctlDev
	}
	return rights
}

// missing returns a text about the rights that a kernel with this version of the interface cannot withhold. The text is
// "" if there are none.
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
	case errors.Is(err, syscall.ENOSYS):
		return 0, errors.New("this kernel has no Landlock, which came with Linux 5.13")
	case errors.Is(err, syscall.EOPNOTSUPP):
		return 0, errors.New("this kernel has Landlock switched off; add landlock to its lsm= parameter")
	case err != nil:
		return 0, failed("this system refuses Landlock", err)
	case abi < minABI:
		return 0, errors.New("the Landlock of this kernel is too old (ABI " + strconv.Itoa(abi) +
			"); it takes Linux 5.19")
	}
	return abi, nil
}

// ruleset is a Landlock ruleset that is not enforced yet.
type ruleset struct {
	descriptor int
	handled    uint64
}

// newRuleset creates a ruleset with the grants of s.
func (s *Sandbox) newRuleset(abi int) (ruleset, error) {
	attributes := rulesetAttributes{handledFS: handledRights(abi)}
	if abi >= 6 {
		attributes.scoped = landlockScopeAbstractSocket
		if !s.Signals {
			attributes.scoped |= landlockScopeSignal
		}
	}
	descriptor, err := createRuleset(&attributes)
	if err != nil {
		return ruleset{}, failed("create a Landlock ruleset", err)
	}
	rules := ruleset{descriptor: descriptor, handled: attributes.handledFS}
	if err := rules.fill(s); err != nil {
		_ = syscall.Close(descriptor)
		return ruleset{}, err
	}
	return rules, nil
}

// remark returns a text about the rights that the sandbox cannot withhold, and the paths that it cannot grant.
func (s *Sandbox) remark(abi int) string {
	unenforced := missing(abi)
	if unenforced != "" && s.Remark != "" {
		return unenforced + "; " + s.Remark
	}
	return unenforced + s.Remark
}

// fill adds the rules. One rule permits listing every directory, because df, du and ls need the names. The names of
// files are not secret. Besides, no rule could prevent a program from testing whether a name exists.
func (r ruleset) fill(s *Sandbox) error {
	err := r.allow("/", accessReadDir)
	for _, path := range devices() {
		err = errors.Join(err, r.allow(path, deviceRights))
	}
	withheld := uint64(0)
	if s.Executable != nil {
		withheld = accessExecute
	}
	for _, g := range s.Grants {
		rights := readRights
		if g.Write {
			rights = writeRights
		}
		err = errors.Join(err, r.allow(g.Path, rights&^withheld))
	}
	return errors.Join(err, r.allowExecution(s.Executable))
}

// allow adds a rule for path. It adds no rule if path cannot be opened, for example because path does not exist. It
// also adds no rule if a part of path is a symbolic link. So an agent cannot redirect a rule with a link.
func (r ruleset) allow(path string, rights uint64) error {
	descriptor, err := openWithoutLinks(path)
	if err != nil {
		return nil // not granted
	}
	defer func() { _ = syscall.Close(descriptor) }()
	var info syscall.Stat_t
	if err := syscall.Fstat(descriptor, &info); err != nil {
		return failed("look at "+path, err)
	}
	switch info.Mode & syscall.S_IFMT {
	case syscall.S_IFLNK:
		return nil
	case syscall.S_IFDIR:
	default:
		rights &= writeFileRights | deviceRights
	}
	rule := pathBeneath{allowed: rights & r.handled, parent: int32(descriptor)} //nolint:gosec // small
	if err := addRule(r.descriptor, &rule); err != nil {
		return failed("grant "+path, err)
	}
	return nil
}

// enforce applies the ruleset to the calling thread, and to the program that the thread executes.
func (r ruleset) enforce() error {
	if err := restrictSelf(r.descriptor); err != nil {
		return failed("enforce a Landlock ruleset", err)
	}
	return nil
}

// confine puts the calling thread, and the program that the thread executes, into the sandbox. The argument target is
// the number of the user who will run the program. If the sandbox has files judged, confine returns the descriptor on
// which the kernel asks; -1 without one.
func (s *Sandbox) confine(target int) (state Sandboxed, listener int) {
	listener = -1
	unjudged := connectionsUnjudged(target)
	state = s.enter(target)
	if state.ABI == 0 || s.Opens == nil {
		return state, listener
	}
	why, filter := errors.New("the tier's rules grant sudo"), s.Opens.Filter
	if unjudged != nil {
		filter = s.Opens.FileFilter
	}
	if !s.Setuid {
		listener, why = installListener(filter)
	}
	state.Opens, state.Connects = why == nil, why == nil && unjudged == nil
	switch {
	case why != nil:
		state.add("files are not judged when they are opened, nor are connections: " + why.Error())
	case unjudged != nil:
		state.add("connections are not judged: " + unjudged.Error())
	}
	return state, listener
}

// add adds a sentence to the remark.
func (s *Sandboxed) add(text string) {
	if s.Remark != "" {
		text = s.Remark + "; " + text
	}
	s.Remark = text
}

// connectionsUnjudged returns the reason for which an init cannot judge the connections of programs of a user; nil if
// it can. It must copy the descriptors of these programs.
func connectionsUnjudged(target int) error {
	held, err := effectiveCapabilities()
	if err != nil {
		return err
	}
	if target != os.Geteuid() && !held.has(capSysPtrace) {
		return errors.New("this worker has no CAP_SYS_PTRACE, which that takes if agents have a user of their own")
	}
	handle, _, errno := syscall.Syscall(sysPidfdOpen, uintptr(os.Getpid()), 0, 0)
	if errno != 0 {
		return failed("call pidfd_open", errno)
	}
	defer func() { _ = syscall.Close(int(handle)) }()
	copied, _, errno := syscall.Syscall(sysPidfdGetfd, handle, controlDescriptor, 0)
	if errno != 0 {
		return failed("call pidfd_getfd", errno)
	}
	return syscall.Close(int(copied))
}

// enter is confine without the judging of files.
func (s *Sandbox) enter(target int) Sandboxed {
	abi, err := landlockABI()
	if err != nil {
		return Sandboxed{Remark: err.Error()}
	}
	held, err := effectiveCapabilities()
	if err != nil {
		return Sandboxed{Remark: err.Error()}
	}
	// Without CAP_SYS_ADMIN the kernel enforces a ruleset only under no_new_privs. That attribute prevents programs
	// from gaining rights.
	privileged := held.has(capSysAdmin)
	if s.Setuid && !privileged && target != superuser {
		return Sandboxed{Remark: "it would keep sudo from working, which the tier's rules grant, unless this worker " +
			"has CAP_SYS_ADMIN"}
	}
	rules, err := s.newRuleset(abi)
	if err != nil {
		return Sandboxed{Remark: err.Error()}
	}
	if !s.Setuid || !privileged {
		if err := prctl(prSetNoNewPrivs, 1); err != nil {
			return Sandboxed{Remark: failed("set no_new_privs", err).Error()}
		}
	}
	if err := errors.Join(dropCapabilities(capabilities(s.Capabilities), target), rules.enforce(),
		installFilter(s.Filter)); err != nil {
		return Sandboxed{Remark: err.Error()}
	}
	_ = syscall.Close(rules.descriptor)
	return Sandboxed{ABI: abi, Remark: s.remark(abi)}
}

// superuser is the user number of root.
const superuser = 0
