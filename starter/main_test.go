package main

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// asStarter makes the test binary the program itself.
const asStarter = "CLAUDEOPS_TEST_STARTER"

// TestMain lets the test binary be the stand-in for claude, and the program itself.
func TestMain(m *testing.M) {
	if os.Getenv(asStarter) != "" {
		_ = os.Unsetenv(asStarter)
		main()
	}
	flag.Parse()
	os.Exit(m.Run())
}
