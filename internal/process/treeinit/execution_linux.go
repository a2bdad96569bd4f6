package treeinit

import (
	"errors"
	"runtime"
	"syscall"
)

// LimitExecution calls start on a thread that may execute only the files at paths. The programs that start starts, and
// all their children, have the same limit. They gain no rights from setuid files, and cannot see the memory, the
// environment and the open files of this process. The limit adds to those of this process: a file must be permitted by
// all. On a kernel without Landlock there is no limit.
//
// The paths are absolute and have no symbolic links. The list must contain the started program with its interpreter and
// loader. The function start must not start goroutines that start programs, and must not set a death signal, which the
// kernel sends when the thread ends.
func LimitExecution(paths []string, start func() error) error {
	if _, err := landlockABI(); err != nil {
		return start()
	}
	done := make(chan error)
	go func() {
		// The limit belongs to the thread. This goroutine never unlocks its thread. So the thread ends with the
		// goroutine, and no other goroutine runs on the thread.
		runtime.LockOSThread()
		err := limitThread(paths)
		if err == nil {
			err = start()
		}
		done <- err
	}()
	return <-done
}

// limitThread limits the calling thread to the execution of the files at paths.
func limitThread(paths []string) error {
	descriptor, err := createRuleset(&rulesetAttributes{handledFS: accessExecute})
	if err != nil {
		return failed("create a Landlock ruleset", err)
	}
	defer func() { _ = syscall.Close(descriptor) }()
	rules := ruleset{descriptor: descriptor, handled: accessExecute}
	if err := rules.allowExecution(paths); err != nil {
		return err
	}
	if err := prctl(prSetNoNewPrivs, 1); err != nil {
		return failed("set no_new_privs", err)
	}
	return rules.enforce()
}

// allowExecution adds the rules that permit the execution of the files at paths. A directory stands for all files below
// it.
func (r ruleset) allowExecution(paths []string) (err error) {
	for _, path := range paths {
		err = errors.Join(err, r.allow(path, accessExecute))
	}
	return err
}
