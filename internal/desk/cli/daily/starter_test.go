package daily

import "github.com/claudeops/claudeops/internal/systemtest/clitest"

// These run the program with the commands of this package.
var (
	starter  = clitest.Of(Commands).Run
	atNoon   = clitest.Of(Commands).AtNoon().Run
	onScreen = clitest.Of(Commands).AtNoon().OnScreen
)
