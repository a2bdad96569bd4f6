package shell

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/interp"
)

// limits maps the options of ulimit to the resources that they show, and to the unit in bytes (bash(1), ulimit).
var limits = map[string]struct {
	resource int
	unit     uint64
	name     string
}{
	"-c": {unix.RLIMIT_CORE, 1024, "core file size"},
	"-d": {unix.RLIMIT_DATA, 1024, "data seg size"},
	"-f": {unix.RLIMIT_FSIZE, 1024, "file size"},
	"-l": {unix.RLIMIT_MEMLOCK, 1024, "max locked memory"},
	"-m": {unix.RLIMIT_RSS, 1024, "max memory size"},
	"-n": {unix.RLIMIT_NOFILE, 1, "open files"},
	"-s": {unix.RLIMIT_STACK, 1024, "stack size"},
	"-t": {unix.RLIMIT_CPU, 1, "cpu time"},
	"-u": {unix.RLIMIT_NPROC, 1, "max user processes"},
	"-v": {unix.RLIMIT_AS, 1024, "virtual memory"},
}

// ulimit shows or sets the limits of the shell and of its programs.
func (s *session) ulimit(shell interp.HandlerContext, args []string) int {
	hard, value := false, ""
	var options []string
	for _, arg := range args {
		switch {
		case arg == "-H" || arg == "-S":
			hard = arg == "-H"
		case arg == "-a":
			options = append(options, "-c", "-d", "-f", "-l", "-m", "-n", "-s", "-t", "-u", "-v")
		case strings.HasPrefix(arg, "-"):
			options = append(options, arg)
		default:
			value = arg
		}
	}
	if len(options) == 0 {
		options = []string{"-f"}
	}
	for _, option := range options {
		if err := s.limit(shell, option, value, hard, len(options) > 1); err != nil {
			_, _ = fmt.Fprintf(shell.Stderr, "ulimit: %s: %v\n", option, err)
			return 1
		}
	}
	return 0
}

// limit shows one limit, or sets it if value is not empty.
func (s *session) limit(shell interp.HandlerContext, option, value string, hard, named bool) error {
	of, is := limits[option]
	if !is {
		return fmt.Errorf("there is no such limit")
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(of.resource, &limit); err != nil {
		return err
	}
	if value != "" {
		number, err := strconv.ParseUint(value, 10, 54)
		if limit.Cur = number * of.unit; value == "unlimited" {
			limit.Cur, err = unix.RLIM_INFINITY, nil
		}
		if err != nil {
			return err
		}
		return unix.Setrlimit(of.resource, &limit)
	}
	current := limit.Cur
	if hard {
		current = limit.Max
	}
	text := "unlimited"
	if current != unix.RLIM_INFINITY {
		text = strconv.FormatUint(current/of.unit, 10)
	}
	if named {
		text = fmt.Sprintf("%-20s (%s) %s", of.name, option, text)
	}
	_, err := fmt.Fprintln(shell.Stdout, text)
	return err
}
