package operations

import "context"

// Now returns what happens now. It always returns a result: each part has its own problem.
func (o Overview) Now(context.Context) Now { return Now{} }
