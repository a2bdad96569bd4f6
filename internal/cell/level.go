package cell

// Level says what holds an agent that has passed the guard.
type Level string

// The levels, from the strongest to the weakest.
const (
	LevelFull   Level = "full"        // the kernel's sandbox, and another user
	LevelUser   Level = "user only"   // another user: Tier 3, or a kernel without a sandbox
	LevelKernel Level = "kernel only" // the kernel's sandbox, and the supervisor's user
	LevelGuard  Level = "guard only"
)

// levelOf returns the level of an agent. The argument confined reports that the kernel's sandbox was in force, and
// separate that the agent had another user than the worker.
func levelOf(confined, separate bool) Level {
	switch {
	case confined && separate:
		return LevelFull
	case confined:
		return LevelKernel
	case separate:
		return LevelUser
	}
	return LevelGuard
}

// open says what the level leaves open at Tiers 1 and 2, in half a sentence.
func (l Level) open() string {
	switch l {
	case LevelFull:
		return "agents can reach sockets that their user may open"
	case LevelUser:
		return "agents can read what everybody may read, and write what their user may write"
	case LevelKernel:
		return "agents can reach sockets of the worker's user, and change the permissions and times of its files"
	case LevelGuard:
	}
	return "an agent that passes the guard can do what the worker can do"
}
