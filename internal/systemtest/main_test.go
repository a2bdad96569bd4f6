package systemtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/claudeops/claudeops/internal/systemtest/forgetest"
	"github.com/claudeops/claudeops/internal/systemtest/servicetest"
)

// TestMain lets the test binary also run as the service that breaks, as the roles of the fault tests, and as the
// agent from hell.
func TestMain(m *testing.M) {
	if path := os.Getenv(unitVariable); path != "" {
		fmt.Fprintln(os.Stderr, becomeUnit(path))
		os.Exit(1)
	}
	servicetest.Run()
	forgetest.Run()
	if name := os.Getenv(roleVariable); name != "" {
		playRole(name)
	}
	if filepath.Base(os.Args[0]) == hellProgram {
		playAgentFromHell()
	}
	// Run more tests in parallel than there are CPUs, because most of them wait for timers or for a database. A value
	// on the command line takes precedence.
	if err := flag.Set("test.parallel", strconv.Itoa(max(12, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := stopSharedTemporal(); err != nil {
		panic(err)
	}
	os.Exit(code)
}
