package claude

import "errors"

// KindOf returns the kind of the *Error in err's chain, or "" if there is none.
func KindOf(err error) ErrorKind {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Kind
	}
	return ""
}

// FullName returns the full name that the profile of the CLI's version has for an alias.
func (c *CLI) FullName(alias string) string { return c.profile.fullName(alias) }
