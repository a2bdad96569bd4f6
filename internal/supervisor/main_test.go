package supervisor_test

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/process"
)

// TestMain lets the test binary be the stand-in for claude, and the service that breaks.
func TestMain(m *testing.M) {
	process.InitIfAsked()
	if claudesim.Invoked() {
		claudesim.Main()
	}
	if dir := os.Getenv(serviceVariable); dir != "" {
		runService(dir)
	}
	os.Exit(m.Run())
}
