package hook_test

import (
	"os"
	"testing"
)

// TestMain is for the flag of package simtest. The test binary is the CLI's shell, too, by package agentshell.
func TestMain(m *testing.M) { os.Exit(m.Run()) }
