package console

import "github.com/claudeops/claudeops/internal/plant/program"

// The exit codes of claudeops that package program does not have.
const (
	ExitNeedsPerson program.ExitCode = 3 // a followed chain ended needs_human, suppressed or aborted
	// ExitDenied: policy check: the call is denied; policy test: some decisions are not as expected
	ExitDenied      program.ExitCode = 3
	ExitChainFailed program.ExitCode = 4 // a followed chain ended failed
)

// ExitHelp describes the exit codes.
const ExitHelp = `Exit codes:
  0  done; followed to its end, the chain ended healthy, resolved, known or overridden
  1  something did not work
  2  the command line, the input, the answer to a gate or the configuration is wrong; nothing was done
  3  followed to its end, the chain ended needs_human, suppressed or aborted;
     policy check: the call is denied; policy test: some calls are not decided as expected
  4  followed to its end, the chain ended failed`
