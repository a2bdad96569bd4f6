package process_test

import (
	"os"
	"os/signal"
	"testing"
)

// TestMain also runs the test binary in the roles of helper_test.go, such as a worker that can be killed.
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
	if path := os.Getenv(visitTo); path != "" {
		os.Exit(visit(path))
	}
	becomeExecutor()
	if script := os.Getenv(workerScript); script != "" {
		os.Exit(work(script))
	}
	// A shell starts a background command with SIGINT ignored. The programs of these tests would inherit that.
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	os.Exit(m.Run())
}
