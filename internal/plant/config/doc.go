// Package config turns the environment into validated values once, at the start of a program. Only main reads the
// environment, and passes it to this package.
//
// One struct field is one setting. The tags of the field name and describe the setting's variable. The parser,
// `claudeops config` and docs/configuration.md all read these tags. Defaults are Go values in defaults.go. An empty
// variable counts as unset.
//
// Load reports all problems together: values that do not parse or are out of range, settings that contradict each
// other, prompt files that cannot be used, and unknown CLAUDEOPS_ variables. Unknown variables are errors because a
// misspelled safety setting must not be ignored.
package config
