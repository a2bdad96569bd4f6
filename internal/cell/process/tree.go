package process

// Tree identifies the tree of a Run that has not returned.
type Tree struct {
	// PID is the process number of the tree's root: the init or, in ModeGroup, the program.
	PID int
	// started is the time at which the root started. It distinguishes the root from a later process with the same
	// number.
	started uint64
}
