package operate

import "github.com/claudeops/claudeops/internal/systemtest/clitest"

// claudeops runs the program with the commands of this package.
var starter = clitest.Of(Commands).Run
