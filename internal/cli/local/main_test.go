package local

import (
	_ "github.com/claudeops/claudeops/internal/agentshell" // the test binary is also the shell of its agents, as starter is
	"github.com/claudeops/claudeops/internal/cli/clitest"
)

// starter runs the program with the commands of this package.
var starter = clitest.Of(Commands).Run
