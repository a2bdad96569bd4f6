package access

import (
	"sync"
	"time"
)

// crowdRetry is the time after which a person who has too many requests open may try again.
const crowdRetry = 15 * time.Second

// Crowd limits the requests that a person has open at the same time, for requests that wait.
type Crowd struct{ crowd *crowd }

type crowd struct {
	limit int

	mutex sync.Mutex
	open  map[string]int // by person
}

// NewCrowd returns a Crowd with a limit for each person.
func NewCrowd(limit int) Crowd { return Crowd{&crowd{limit: limit, open: map[string]int{}}} }

// Enter counts a request of a person. If the person has too many open already, Enter counts nothing and returns a
// *TooManyError.
func (c Crowd) Enter(person string) error {
	c.crowd.mutex.Lock()
	defer c.crowd.mutex.Unlock()
	if c.crowd.open[person] >= c.crowd.limit {
		return &TooManyError{After: crowdRetry}
	}
	c.crowd.open[person]++
	return nil
}

// Leave ends a request that Enter has counted.
func (c Crowd) Leave(person string) {
	c.crowd.mutex.Lock()
	defer c.crowd.mutex.Unlock()
	c.crowd.open[person]--
	if c.crowd.open[person] == 0 {
		delete(c.crowd.open, person)
	}
}
