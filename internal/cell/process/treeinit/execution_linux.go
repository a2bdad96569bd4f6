package treeinit

import (
	"errors"
	"runtime"
	"syscall"
	"time"
)

// LimitExecution calls start on a thread that may execute only the files at paths. The programs that start starts, and
// all their children, have the same limit. They gain no rights from setuid files, and cannot see the memory, the
// environment and the open files of this process. The limit adds to those of this process: a file must be permitted by
// all. On a kernel without Landlock there is no limit. A filter of system calls also holds for these programs; without
// Landlock a start with a filter fails.
//
// The paths are absolute and have no symbolic links. The list must contain the started program with its interpreter and
// loader. One call runs at a time, so start returns as soon as the program runs. It does not start goroutines that
// start programs, and sets no death signal, which the kernel sends when the thread ends. Meanwhile this process cannot
// start a program in a user namespace, because it is hidden.
func LimitExecution(paths []string, filter string, start func() error) (err error) {
	if _, err := landlockABI(); err != nil && filter == "" {
		return start()
	}
	limiting <- struct{}{}
	defer func() { <-limiting }()
	// Nobody may look into this process while one of its threads has the limits of the started program. Landlock would
	// let that program use the thread's memory, which is the memory of the process. Where files are judged, that memory
	// is refused, and a hidden process could open no file, because the judge reads its memory.
	hidden := !judged()
	if hidden {
		if err := prctl(syscall.PR_SET_DUMPABLE, 0); err != nil {
			return failed("hide this process", err)
		}
	}
	onThread(func() {
		if err = limitThread(paths, filter); err == nil {
			err = start()
		}
	})
	if hidden {
		err = errors.Join(err, prctl(syscall.PR_SET_DUMPABLE, 1))
	}
	return err
}

// judgedQuestion is a path that does not exist. An answerer answers it with EALREADY.
const judgedQuestion = "/proc/self/judged"

// judged reports whether the files that this process opens are judged.
func judged() bool {
	file, err := syscall.Open(judgedQuestion, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err == nil {
		_ = syscall.Close(file)
	}
	return errors.Is(err, syscall.EALREADY)
}

// limiting is held by the only caller of LimitExecution.
var limiting = make(chan struct{}, 1) //nolint:gochecknoglobals // the attribute that it guards belongs to the process

// onThread calls fn on a thread of its own. It returns when the thread has ended.
func onThread(fn func()) {
	ended := make(chan int)
	go func() {
		// This goroutine never unlocks its thread, so the thread ends with the goroutine.
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() { // the process's first thread never ends
			onThread(fn)
			runtime.UnlockOSThread()
			ended <- 0
			return
		}
		fn()
		ended <- syscall.Gettid()
	}()
	const pause = 20 * time.Microsecond
	for thread := <-ended; thread != 0 && syscall.Tgkill(syscall.Getpid(), thread, 0) == nil; {
		time.Sleep(pause)
	}
}

// limitThread limits the calling thread to the execution of the files at paths, and to what the filter lets pass; ""
// for everything.
func limitThread(paths []string, filter string) error {
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
	if err := rules.enforce(); err != nil || filter == "" {
		return err
	}
	return installFilter(filter)
}

// allowExecution adds the rules that permit the execution of the files at paths. A directory stands for all files below
// it.
func (r ruleset) allowExecution(paths []string) (err error) {
	for _, path := range paths {
		err = errors.Join(err, r.allow(path, accessExecute))
	}
	return err
}
