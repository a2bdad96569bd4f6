package forge_test

import (
	"os"
	"testing"

	"github.com/claudeops/claudeops/internal/systemtest/forgetest"
)

func TestMain(m *testing.M) {
	forgetest.Run()
	os.Exit(m.Run())
}
