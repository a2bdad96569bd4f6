package claude_test

import (
	"flag"
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/claude"
)

// containment is how the contract's CLIs are held together.
var containment = flag.String("containment", string(claude.ContainmentAuto), "containment of the CLIs under test")

// TestMain lets the test binary be the stand-in `claude`, too.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}
