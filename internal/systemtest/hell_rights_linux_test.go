package systemtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// rightsAttacks returns attacks that use the rights of the worker's user: its capabilities, its terminals, and what the
// owner of a file may do.
func rightsAttacks() []attack {
	return []attack{
		{at: onRights, name: "listen to the packets of this host", act: func(victim) error { return openSocket(unix.AF_PACKET, unix.SOCK_RAW, 0) }},
		{at: onRights, name: "make packets", act: func(victim) error { return openSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP) }},
		{at: onRights, name: "keep a capability", act: func(victim) error { return holdCapability("CapEff", "CapPrm", "CapInh", "CapAmb") }},
		{at: onRights, name: "be another user", act: func(victim) error { return unix.Setresuid(2, 2, 2) }},
		{at: onRights, name: "be in another group", act: func(victim) error { return unix.Setgroups([]int{2}) }},
		{at: onFiles, name: "open the state directory to everybody", act: func(v victim) error { return os.Chmod(v.State, 0o755) }, harm: stateIsOpen}, //nolint:gosec // an attack
		{at: onFiles, name: "open the records to everybody", act: func(v victim) error { return os.Chmod(v.database(), 0o644) }, harm: stateIsOpen},    //nolint:gosec // an attack
		{at: onFiles, name: "give the state directory away", act: func(v victim) error { return os.Chown(v.State, 1, 1) }},
		{
			at: onFiles, name: "change the times of the records", act: func(v victim) error { return os.Chtimes(v.database(), time.Now(), time.Now()) },
			open: map[hellMode]string{
				ordinaryUser: "Landlock does not hold what the owner of a file may do with its times; nothing relies on them",
				rootAlone:    "the same",
			},
		},
		{at: onTerminals, name: "write to the operator's terminal", act: func(v victim) error { return openTerminal(v.Terminal, unix.O_WRONLY) }},
		{at: onTerminals, name: "read from the operator's terminal", act: func(v victim) error { return openTerminal(v.Terminal, unix.O_RDONLY) }},
		{at: onTerminals, name: "write to any terminal", act: func(victim) error {
			found, err := filepath.Glob("/dev/pts/*")
			consoles, _ := filepath.Glob("/dev/tty?*")
			for _, path := range append(found, consoles...) {
				if openTerminal(path, unix.O_WRONLY) == nil {
					return nil
				}
			}
			return errors.Join(errors.New("none could be opened"), err)
		}},
	}
}

// database returns the path of the records.
func (v *victim) database() string { return filepath.Join(v.State, "claudeops.db") }

// stateIsOpen returns an error if other users can read the worker's files after the session.
func stateIsOpen(v victim) error {
	for _, path := range []string{v.State, v.database()} {
		info, err := os.Stat(path)
		if err == nil && info.Mode()&0o077 != 0 {
			err = fmt.Errorf("%s has the mode %s", path, info.Mode())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func openSocket(family, kind, protocol int) error {
	_, err := unix.Socket(family, kind, protocol)
	return err
}

func openTerminal(path string, flags int) error {
	_, err := unix.Open(path, flags|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	return err
}

// holdCapability looks for another capability in this process's sets than the one to read and write all files, which
// the agents of root keep.
func holdCapability(sets ...string) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		for _, set := range sets {
			var bits uint64
			if _, err := fmt.Sscanf(value, "%x", &bits); name == set && err == nil && bits&^(1<<unix.CAP_DAC_OVERRIDE) != 0 {
				return nil
			}
		}
	}
	return errors.New("there is none")
}
