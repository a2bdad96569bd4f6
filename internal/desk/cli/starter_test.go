package cli

import (
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
)

// These run the program with all of its commands.
var (
	starter  = clitest.Starter{Execute: execute}.Run
	mute     = clitest.Starter{Execute: execute, Patience: clitest.NobodysPatience}.Run // where no worker runs
	atNoon   = clitest.Starter{Execute: execute}.AtNoon().Run
	worked   = clitest.Starter{Execute: execute, Clock: chaintest.Clock}.Run // at noon, where a worker runs
	onScreen = clitest.Starter{Execute: execute, Clock: chaintest.Clock}.OnScreen
)
