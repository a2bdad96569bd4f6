package main

import (
	"errors"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/escalation"
)

// exitCode is what the process ends with. The codes are listed in the help and relied
// upon by scripts.
type exitCode int

// The exit codes.
const (
	exitOK          exitCode = 0 // done; a chain that was waited for ended healthy, resolved or overridden
	exitFailure     exitCode = 1 // something did not work
	exitUsage       exitCode = 2 // the command line, the input, the answer to a gate or the configuration is wrong; nothing was done
	exitNeedsPerson exitCode = 3 // a chain that was waited for ended needs_human, suppressed or aborted
	exitDenied      exitCode = 3 // policy check: the call is denied; policy test: some calls are not decided as expected
	exitChainFailed exitCode = 4 // a chain that was waited for ended failed
)

// exitHelp explains the codes.
const exitHelp = `Exit codes:
  0  done; followed to its end, the chain ended healthy, resolved or overridden
  1  something did not work
  2  the command line, the input, the answer to a gate or the configuration is wrong; nothing was done
  3  followed to its end, the chain ended needs_human, suppressed or aborted;
     policy check: the call is denied; policy test: some calls are not decided as expected
  4  followed to its end, the chain ended failed`

// exitError is an error that asks for an exit code of its own.
type exitError struct {
	code exitCode
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// misuse marks err as the caller's mistake.
func misuse(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

// codeOf returns the exit code for what a command returned.
func codeOf(err error) exitCode {
	var own *exitError
	var invalid *config.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &invalid):
		return exitUsage
	default:
		return exitFailure
	}
}

// errorOf turns the outcome of a chain that was waited for into a command's error.
func errorOf(chain escalation.Chain) error {
	failure := func(code exitCode) error {
		return &exitError{code, errors.New("chain " + chain.ID + " ended " + string(chain.Outcome) + ": " + chain.Reason)}
	}
	switch chain.Outcome {
	case escalation.OutcomeHealthy, escalation.OutcomeResolved, escalation.OutcomeOverridden:
		return nil
	case escalation.OutcomeNeedsHuman, escalation.OutcomeSuppressed, escalation.OutcomeAborted:
		return failure(exitNeedsPerson)
	case escalation.OutcomeFailed:
		return failure(exitChainFailed)
	}
	return failure(exitChainFailed)
}
