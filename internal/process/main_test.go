package process_test

import (
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/process"
)

// TestMain lets the test binary be an init, and a worker that can be killed.
func TestMain(m *testing.M) {
	if choice := os.Getenv(forgetful); choice != "" { // does not call InitIfAsked
		os.Exit(probe(process.Mode(choice)))
	}
	if dir := os.Getenv(superuserIn); dir != "" {
		os.Exit(becomeSuperuser(dir))
	}
	if os.Getenv(peerHost) != "" {
		os.Exit(hostPeers())
	}
	if address := os.Getenv(peerGuest); address != "" {
		os.Exit(askHost(address))
	}
	if self, err := os.Executable(); err == nil && filepath.Base(self) == wanderer {
		leaveFirstThread()
	}
	process.InitIfAsked()
	if script := os.Getenv(workerScript); script != "" {
		os.Exit(work(script))
	}
	// A shell starts a command in the background with SIGINT ignored, and so would be what these tests start.
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	os.Exit(m.Run())
}
