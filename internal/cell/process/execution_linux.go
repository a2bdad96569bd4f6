package process

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/cell/process/treeinit"
)

// interpreterName matches the file names of programs that execute what they are given.
var interpreterName = regexp.MustCompile(`^(sh|bash|rbash|dash|ash|zsh|ksh|mksh|fish|busybox|toybox|` +
	`python|perl|ruby|node|nodejs|php|lua|luajit|tclsh|guile|java)[0-9.-]*$`)

// executionRemark describes what the tree may execute, for a person.
func (s *Sandbox) executionRemark() string {
	if s.Executable == nil {
		return "execution not limited"
	}
	var open []string
	for _, path := range s.Executable {
		if name := filepath.Base(path); interpreterName.MatchString(name) && !slices.Contains(open, name) {
			open = append(open, name)
		}
	}
	limited := fmt.Sprintf("execution limited to %d files", len(s.Executable))
	if len(open) == 0 {
		return limited + " without an interpreter"
	}
	return limited + ", with the interpreters " + strings.Join(open, ", ")
}

// LimitExecution calls start, and limits the programs that start starts to the execution of the files at paths. If they
// are offline, they open no sockets. See treeinit.LimitExecution.
func LimitExecution(paths []string, offline bool, start func() error) error {
	var calls []byte
	if offline {
		var err error
		if calls, err = offlineFilter(); err != nil {
			return err
		}
	}
	return treeinit.LimitExecution(paths, string(calls), start)
}
