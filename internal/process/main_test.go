package process_test

import (
	"os"
	"os/signal"
	"testing"
)

// TestMain lets the test binary be a worker that can be killed, and more: see helper_test.go.
func TestMain(m *testing.M) {
	if dir := os.Getenv(superuserIn); dir != "" {
		os.Exit(becomeSuperuser(dir))
	}
	if os.Getenv(peerHost) != "" {
		os.Exit(hostPeers())
	}
	if address := os.Getenv(peerGuest); address != "" {
		os.Exit(askHost(address))
	}
	if script := os.Getenv(workerScript); script != "" {
		os.Exit(work(script))
	}
	// A shell starts a command in the background with SIGINT ignored, and so would be what these tests start.
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	os.Exit(m.Run())
}
