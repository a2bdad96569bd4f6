package treeinit

import (
	"strconv"
	"syscall"
)

// allow judges what the caller wants to do with a file.
func (c *call) allow(found *place, wanted access) error {
	path, err := found.path()
	if err != nil {
		return err
	}
	return c.allowPath(path, wanted, found.file >= 0 && found.kind() == syscall.S_IFDIR)
}

// allowPath judges what the caller wants to do with the file at a real path.
func (c *call) allowPath(path string, wanted access, directory bool) error {
	if reason := c.refuses(path, wanted, directory); reason != "" {
		c.reports <- Refused{Path: path, Program: c.caller.executable(), Write: wanted&toWrite != 0, Reason: reason}
		c.reports <- Refused{} // received after the report: the tree may end once the caller has its answer
		return syscall.EACCES
	}
	if directory && wanted == toRead { // every directory may be listed
		return nil
	}
	if !c.rules.grants(path, wanted) && !isPipe(path) {
		return syscall.EACCES // as Landlock refuses it, which reports nothing either
	}
	return nil
}

// isPipe reports whether the path is that of something without a path: a pipe or a file in memory. Only a link in /proc
// leads there, and links to the caller's own descriptors are the only ones that are followed.
func isPipe(path string) bool {
	for _, kind := range []string{"pipe:[", "socket:[", "anon_inode:", "/memfd:"} {
		if hasPrefix(path, kind) {
			return true
		}
	}
	return false
}

// refuses returns the reason for which the caller may not use the file; "" if it may. The names in a directory are no
// secret.
func (c *call) refuses(path string, wanted access, directory bool) string {
	if hasPrefix(path, "/proc/") {
		number, file, _ := cutPath(path[len("/proc/"):])
		_, err := strconv.Atoi(number)
		switch {
		case err != nil: // not of a process
		case !c.caller.owns(number):
			if !ofAnybody(file) {
				return "it shows the inside of another process"
			}
		case baseOf(file) != "environ" && baseOf(file) != "mem":
			return "" // a process may look at itself
		}
	}
	if directory && wanted == toRead {
		return ""
	}
	return c.rules.refuses(path, wanted, c.program)
}

// program returns the path of the caller's executable; "" if the caller no longer waits. Then another thread of its
// process may have executed another program.
func (c *call) program() string {
	file := c.caller.executable()
	if !c.valid() {
		return ""
	}
	return file
}

// ofAnybody reports whether a file of a process in /proc tells nothing of its memory, environment and open files.
func ofAnybody(file string) bool {
	if directory, rest, _ := cutPath(file); directory == "task" {
		_, file, _ = cutPath(rest)
	}
	switch file {
	case "", "fd", "fdinfo", "net", "attr", "ns", // only their names are shown
		"stat", "statm", "status", "cmdline", "comm", "cgroup", "limits", "io", "loginuid", "sessionid", "mounts",
		"mountinfo", "mountstats", "sched", "schedstat", "wchan", "oom_score", "oom_adj", "oom_score_adj", "cpuset",
		"autogroup", "children",
		"smaps_rollup", "uid_map", "gid_map", "setgroups", "personality", "coredump_filter", "timens_offsets",
		"arch_status":
		return true
	}
	return hasPrefix(file, "net/") || hasPrefix(file, "attr/")
}
