package hook_test

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// TestMain makes the test binary the stand-in, too. The CLI's shell it is by package agentshell.
func TestMain(m *testing.M) {
	if claudesim.Invoked() {
		claudesim.Main()
	}
	os.Exit(m.Run())
}
