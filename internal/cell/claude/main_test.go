package claude_test

import (
	"flag"
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/cell/claude"
)

// containment is the containment with which the contract tests run the CLI.
var containment = flag.String("containment", string(claude.ContainmentAuto), "containment of the CLIs under test")

// TestMain also runs the test binary as the stand-in `claude`.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}
