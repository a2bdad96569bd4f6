package console

import "github.com/claudeops/claudeops/workflows"

// maxChainID limits the length of a printed chain ID. It is the maximum length of a workflow ID, so that a printed
// command always contains the whole ID.
const maxChainID = 1_000

// PrintableID returns a chain's ID in a form that is safe for a terminal.
func PrintableID(chainID string) string { return Printable(chainID, maxChainID) }

// AnswerCommand returns the command that answers the gate of a chain.
func AnswerCommand(chainID string) string { return "claudeops gate " + operand(chainID) }

// LookCommand returns the command that shows a chain.
func LookCommand(chainID string) string { return "claudeops chain " + operand(chainID) }

// WatchCommand returns the command that follows a chain.
func WatchCommand(chainID string) string { return "claudeops watch " + operand(chainID) }

// PlanCommand returns the command that shows the plan of a chain.
func PlanCommand(chainID string) string { return "claudeops plan status " + operand(chainID) }

// EndCommand returns the command that ends a chain.
func EndCommand(chainID string) string { return "claudeops cancel " + operand(chainID) }

// operand returns the ID of a chain, quoted for a shell if necessary.
func operand(chainID string) string { return workflows.Operand(PrintableID(chainID)) }
