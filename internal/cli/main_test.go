package cli

import (
	"flag"
	"os"
	"testing"

	_ "github.com/claudeops/claudeops/internal/agentshell" // this program is also the shell of its agents, as starter is
	"github.com/claudeops/claudeops/internal/program"
)

// asStarter makes the test binary the program itself.
const asStarter = "CLAUDEOPS_TEST_STARTER"

// TestMain lets the test binary be the stand-in for claude, and the program itself.
func TestMain(m *testing.M) {
	if os.Getenv(asStarter) != "" {
		_ = os.Unsetenv(asStarter)
		os.Exit(int(program.Main(Execute, program.Process{
			Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		})))
	}
	flag.Parse()
	os.Exit(m.Run())
}
