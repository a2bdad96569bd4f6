package claude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// journalGroup is the group of users who can read the journal of systemd.
const journalGroup = "systemd-journal"

// CreateUser creates a user without a password, a home and a shell, by the system's own program. The user can read the
// journal, if there is one.
func CreateUser(ctx context.Context, name string) error {
	program, args, err := userProgram(name)
	if err != nil {
		return err
	}
	var said strings.Builder
	exit, err := process.Run(ctx, process.Spec{Path: program, Args: args, Stdout: &said, Stderr: &said})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("%s: %s: %s", program, exit, strings.TrimSpace(said.String()))
	}
	return err
}

// userProgram returns the command that creates a user: that of shadow or that of busybox.
func userProgram(name string) (program string, args []string, err error) {
	const nowhere, noShell = "/nonexistent", "/usr/sbin/nologin"
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		program = dir + "/useradd"
		if _, err := os.Stat(program); err == nil {
			args = []string{"--system", "--user-group", "--no-create-home", "--home-dir", nowhere, "--shell", noShell}
			if _, err := user.LookupGroup(journalGroup); err == nil {
				args = append(args, "--groups", journalGroup)
			}
			return program, append(args, name), nil
		}
	}
	if program = "/usr/sbin/adduser"; process.MayRun(nil, program) == nil {
		return program, []string{"-S", "-D", "-H", "-h", nowhere, "-s", noShell, name}, nil
	}
	return "", nil, errors.New("this system has neither useradd nor adduser")
}
