package local

import (
	_ "github.com/claudeops/claudeops/internal/cell/shell" // the test binary is also the shell of its agents, as claudeops is
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// claudeops runs the program with the commands of this package.
var starter = clitest.Of(Commands).Run
