package cli

import (
	"flag"
	"os"
	"testing"

	_ "github.com/claudeops/claudeops/internal/cell/shell" // the test binary is also the shell of its agents, as claudeops is
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/browsertest"
	"github.com/claudeops/claudeops/internal/systemtest/servicetest"
)

// asStarter is the environment variable that makes the test binary run as claudeops.
const asStarter = "CLAUDEOPS_TEST_STARTER"

// TestMain runs the tests. If asStarter is set, it runs claudeops instead. The test binary is also the stand-in for
// claude, and the service that breaks.
func TestMain(m *testing.M) {
	servicetest.Run()
	if os.Getenv(asStarter) != "" {
		_ = os.Unsetenv(asStarter)
		os.Exit(int(program.Main(Execute, program.Process{
			Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		})))
	}
	flag.Parse()
	os.Exit(browsertest.Run(m))
}
