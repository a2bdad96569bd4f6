package claudesim_test

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/claudesim"
)

func TestMain(m *testing.M) {
	if claudesim.Invoked() {
		claudesim.Main()
	}
	os.Exit(m.Run())
}
