//go:build !linux

package supervisor_test

// hellProgram is the base name of a program that only Linux has.
const hellProgram = "claude-from-hell"

func playAgentFromHell() {}
