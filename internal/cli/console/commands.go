package console

import "github.com/claudeops/claudeops/workflows"

// maxChainID is the length of the longest workflow ID, so that commands hold IDs in full.
const maxChainID = 1_000

// PrintableID returns the ID of a chain, safe for a terminal.
func PrintableID(chainID string) string { return Printable(chainID, maxChainID) }

// AnswerCommand returns the command that answers a chain's gate.
func AnswerCommand(chainID string) string { return "starter gate " + operand(chainID) }

// LookCommand returns the command that shows a chain.
func LookCommand(chainID string) string { return "starter chain " + operand(chainID) }

// EndCommand returns the command that ends a chain.
func EndCommand(chainID string) string { return "starter cancel " + operand(chainID) }

// operand returns the ID of a chain as people copy it into a shell.
func operand(chainID string) string { return workflows.Operand(PrintableID(chainID)) }
