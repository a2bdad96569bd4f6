//go:build soak

package supervisor_test

import (
	"testing"
	"time"
)

// TestSoakIncidents runs as many looks at five services as a schedule with an interval of five minutes runs in a day.
// The faults are those of two hours, but one of them stays unanswered all day.
func TestSoakIncidents(t *testing.T) {
	began := time.Now()
	_, _, _, all := faultsOfTwoHours(*soakLooks)
	w := watchServices(t, *soakLooks, all)
	t.Logf("soak: incidents: %s took=%s", w.requireFollowed(), time.Since(began).Round(time.Second))
}
