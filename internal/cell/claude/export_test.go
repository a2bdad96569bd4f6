package claude

import "errors"

// KindOf returns the kind of the *Error in err's chain, or "" if there is none.
func KindOf(err error) ErrorKind {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Kind
	}
	return ""
}
