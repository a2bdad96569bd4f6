// Package config turns the environment into validated values, once, at the start
// of a program. Nothing below main reads the environment again.
//
// One struct field is one setting: its tags name the variable and say what it
// means, and everything that talks about settings (the parser, the listing of
// `starter config`, docs/configuration.md) reads those tags. Defaults are Go
// values in defaults.go. An empty variable counts as an unset one.
//
// Load reports every problem at once: a value that does not parse, a value out of
// range, settings that contradict each other, a prompt file that cannot be used,
// and a CLAUDEOPS_ variable that does not exist, because a misspelled safety
// setting must not pass unnoticed.
package config
