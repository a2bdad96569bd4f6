package claude_test

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/claudesim"
)

// TestMain lets the test binary be the stand-in `claude`, too.
func TestMain(m *testing.M) {
	if claudesim.Invoked() {
		claudesim.Main()
	}
	os.Exit(m.Run())
}
