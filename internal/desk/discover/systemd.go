package discover

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// unitDir is where administrators put units of their own. A unit of the distribution that is enabled is a link there.
const unitDir = "etc/systemd/system"

// packaged is a unit as the package of Claude Ops installs it.
const packaged = "usr/lib/systemd/system/claudeops-up.service"

// units lists the services whose files somebody has put into unitDir, and finds the unit of Claude Ops. Of a package,
// which has them all, it is the worker's if that is enabled.
func (l *look) units(context.Context) error {
	if l.exists(packaged) {
		l.found.Unit = "claudeops-up"
		if _, err := fs.Lstat(l.host.Files, unitDir+"/multi-user.target.wants/claudeops-worker.service"); err == nil {
			l.found.Unit = "claudeops-worker"
		}
	}
	entries, err := fs.ReadDir(l.host.Files, unitDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		name, is := strings.CutSuffix(entry.Name(), ".service")
		switch {
		case !is || !entry.Type().IsRegular() || !usable(name) || strings.HasSuffix(name, "@"):
		case strings.HasPrefix(name, "claudeops-"):
			if l.found.Unit != "claudeops-up" {
				l.found.Unit = name
			}
		default:
			l.found.OwnUnits = append(l.found.OwnUnits, name)
		}
	}
	return err
}

// failedUnits lists the failed units of systemd.
func (l *look) failedUnits(ctx context.Context) error {
	listed, err := l.host.Run(ctx, "systemctl", "list-units", "--failed", "--plain", "--no-legend", "--no-pager")
	if errors.Is(err, ErrMissing) || err != nil && !l.exists("run/systemd/system") {
		return nil // systemd does not run here
	}
	for line := range strings.Lines(listed) {
		if words := strings.Fields(line); len(words) > 0 && usable(words[0]) {
			l.found.FailedUnits = append(l.found.FailedUnits, words[0])
		}
	}
	return err
}

func (l *look) exists(path string) bool {
	_, err := fs.Stat(l.host.Files, path)
	return err == nil
}

// sudo finds out whether the user may run programs with sudo without a password. A password that sudo remembers for
// some minutes does not count.
func (l *look) sudo(ctx context.Context) error {
	if l.host.UID == 0 {
		return nil
	}
	listed, err := l.host.Run(ctx, "sudo", "-n", "-l")
	if err != nil {
		return nil //nolint:nilerr // sudo is missing, or wants a password
	}
	l.found.Sudo = slices.ContainsFunc(strings.Fields(listed),
		func(word string) bool { return strings.HasPrefix(word, "NOPASSWD:") })
	return nil
}

// system reads the name of the operating system.
func (l *look) system(context.Context) error {
	text, err := fs.ReadFile(l.host.Files, "etc/os-release")
	if err != nil {
		return nil //nolint:nilerr // the description can do without
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); is {
			l.found.System = oneLine(strings.Trim(value, `"'`))
		}
	}
	return nil
}
