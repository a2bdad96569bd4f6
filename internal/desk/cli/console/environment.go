package console

import (
	"cmp"
	"os/user"
	"strings"
)

// Variable returns the value of a variable in environ; "" if environ does not have the variable.
func Variable(environ []string, name string) string {
	for _, entry := range environ {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
	return ""
}

// Actor returns the name of the person who starts a chain or answers a gate. It returns given or, if given is empty,
// the name of the user who runs the command.
func (c *Console) Actor(given string) string {
	name := cmp.Or(given, Variable(c.Environ, "USER"), Variable(c.Environ, "LOGNAME"))
	if name != "" {
		return name
	}
	if current, err := user.Current(); err == nil {
		return current.Username
	}
	if c.Operations.Server != "" {
		return "the person of the token" // as a server takes it anyway
	}
	return "" // the workflow refuses an answer without a name and explains why
}

// ShellQuote quotes text as one word of a POSIX shell.
func ShellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
