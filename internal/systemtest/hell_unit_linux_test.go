package systemtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// unitVariable names a file with the settings of a unit. The test binary applies them to itself before it plays its
// role.
const unitVariable = "HELL_UNIT"

// unitHardening holds the settings of a unit in deploy/systemd that a process can apply to itself. Those that need
// mounts, such as ProtectSystem, are left out.
type unitHardening struct {
	// UID is the user and the group of the process.
	UID int
	// Capabilities is the bounding set.
	Capabilities []uintptr
	// Calls lists the permitted system calls.
	Calls []string
	// Families lists the permitted families of addresses.
	Families []uint64
}

// TestAgentFromHellInUnit runs the attacks on a worker with the hardening of its unit in deploy/systemd, with and
// without the drop-in that gives agents a user of their own.
func TestAgentFromHellInUnit(t *testing.T) { //nolint:tparallel // one subtest after the other: each fills a processor
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process as a unit does")
	}
	for mode, files := range map[hellMode][]string{
		ordinaryUser: {"claudeops-worker.service"},
		agentsUser:   {"claudeops-worker.service", "drop-ins/agent-user.conf"},
	} {
		unit := readUnit(t, files...)
		for _, tier := range []int{1, 2} {
			t.Run(fmt.Sprint(mode, tier), func(t *testing.T) { requireHarmless(t, mode, tier, unit) })
		}
	}
}

// readUnit reads the settings of a unit with its drop-ins.
func readUnit(t *testing.T, files ...string) *unitHardening {
	t.Helper()
	settings := map[string][]string{}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(simtest.ModuleRoot(t), "deploy", "systemd", name))
		require.NoError(t, err)
		for line := range strings.Lines(string(content)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if value == "" || key == "User" {
				delete(settings, key)
			}
			settings[key] = append(settings[key], strings.Fields(value)...)
		}
	}
	for _, key := range []string{"NoNewPrivileges", "RestrictNamespaces"} { // harden applies them to every unit
		require.Equal(t, []string{"yes"}, settings[key], key)
	}
	unit := &unitHardening{}
	if settings["User"][0] != "root" {
		unit.UID = ordinaryUID
	}
	numbers := map[string]uintptr{
		"CAP_CHOWN": unix.CAP_CHOWN, "CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "CAP_KILL": unix.CAP_KILL,
		"CAP_SETGID": unix.CAP_SETGID, "CAP_SETUID": unix.CAP_SETUID, "CAP_SYS_PTRACE": unix.CAP_SYS_PTRACE,
	}
	for _, name := range settings["CapabilityBoundingSet"] {
		require.Contains(t, numbers, name)
		unit.Capabilities = append(unit.Capabilities, numbers[name])
	}
	families := map[string]uint64{
		"AF_UNIX": unix.AF_UNIX, "AF_INET": unix.AF_INET, "AF_INET6": unix.AF_INET6, "AF_NETLINK": unix.AF_NETLINK,
	}
	for _, name := range settings["RestrictAddressFamilies"] {
		require.Contains(t, families, name)
		unit.Families = append(unit.Families, families[name])
	}
	unit.Calls = permittedCalls(t, settings["SystemCallFilter"])
	return unit
}

// permittedCalls returns the system calls that a value of SystemCallFilter permits, with the calls that systemd adds.
func permittedCalls(t *testing.T, filter []string) (calls []string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "systemd-analyze", "--no-pager", "syscall-filter").Output()
	require.NoError(t, err, "systemd-analyze says what the unit's filter of system calls permits")
	groups, group := map[string][]string{}, ""
	for lines := bufio.NewScanner(strings.NewReader(string(output))); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "@"):
			group = line
		case strings.HasPrefix(strings.TrimSpace(line), "#"):
		default:
			groups[group] = append(groups[group], strings.Fields(line)...)
		}
	}
	native, err := arch.GetInfo("")
	require.NoError(t, err)
	found := map[string]bool{}
	for names := append([]string{"@default"}, filter...); len(names) > 0; names = names[1:] {
		name := names[0]
		if strings.HasPrefix(name, "@") {
			require.NotEmpty(t, groups[name], name)
			names = append(names, groups[name]...)
		} else if _, known := native.SyscallNames[name]; known && !found[name] {
			found[name] = true
			calls = append(calls, name)
		}
	}
	return calls
}

// write writes the settings for a process of another user, and returns the path.
func (u *unitHardening) write(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(u)
	require.NoError(t, err)
	path := filepath.Join(openDir(t), "unit.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	return path
}

// becomeUnit applies the settings of a unit to this process, and starts the executable anew. It returns only with an
// error.
func becomeUnit(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var unit unitHardening
	if err := json.Unmarshal(text, &unit); err != nil {
		return err
	}
	runtime.LockOSThread() // the thread that calls execve passes its rights on
	if err := unit.harden(); err != nil {
		return err
	}
	if err := os.Unsetenv(unitVariable); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ())
}

// harden takes rights from this thread, in the order of systemd.
func (u *unitHardening) harden() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		kept := false
		for _, each := range u.Capabilities {
			kept = kept || each == capability
		}
		if kept {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	for _, call := range []uintptr{unix.SYS_SETGID, unix.SYS_SETUID} {
		if _, _, errno := unix.RawSyscall(call, uintptr(u.UID), 0, 0); errno != 0 {
			return fmt.Errorf("become user %d: %w", u.UID, errno)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	for _, policy := range []seccomp.Policy{u.restrictions(), u.permissions()} {
		if err := seccomp.LoadFilter(seccomp.Filter{Policy: policy}); err != nil {
			return fmt.Errorf("load a filter of system calls: %w", err)
		}
	}
	return nil
}

// permissions is SystemCallFilter.
func (u *unitHardening) permissions() seccomp.Policy {
	return seccomp.Policy{
		DefaultAction: seccomp.ActionErrno, // EPERM
		Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: u.Calls}},
	}
}

// restrictions is RestrictNamespaces with RestrictAddressFamilies.
func (u *unitHardening) restrictions() seccomp.Policy {
	const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	var others seccomp.ArgumentConditions
	for _, family := range u.Families {
		others = append(others, seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: family})
	}
	flags := seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: namespaces}}
	return seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
			{
				Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM), Names: []string{"setns"},
				NamesWithCondtions: []seccomp.NameWithConditions{{Name: "clone", Conditions: flags}, {Name: "unshare", Conditions: flags}},
			},
			{
				Action:             seccomp.ActionErrno | seccomp.Action(unix.EAFNOSUPPORT),
				NamesWithCondtions: []seccomp.NameWithConditions{{Name: "socket", Conditions: others}},
			},
		},
	}
}
