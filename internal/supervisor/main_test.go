package supervisor_test

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// TestMain lets the test binary be the stand-in for claude, the service that breaks, and whatever
// else the fault tests run as a process of its own.
func TestMain(m *testing.M) {
	if dir := os.Getenv(serviceVariable); dir != "" {
		runService(dir)
	}
	if name := os.Getenv(roleVariable); name != "" {
		playRole(name)
	}
	// Most of these tests wait: for Temporal's timers, for a database that is away. The command line wins.
	if err := flag.Set("test.parallel", strconv.Itoa(max(12, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := stopSharedTemporal(); err != nil {
		panic(err)
	}
	os.Exit(code)
}
