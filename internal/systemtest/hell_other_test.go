//go:build !linux

package systemtest

import "errors"

// hellProgram is the base name of a program that only Linux has.
const hellProgram = "claude-from-hell"

func playAgentFromHell() {}

// unitVariable names a file with the settings of a unit, which only Linux has.
const unitVariable = "HELL_UNIT"

func becomeUnit(string) error { return errors.ErrUnsupported }
