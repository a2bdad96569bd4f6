//go:build soak

package systemtest

import (
	"testing"
	"time"
)

// TestSoakIncidents runs the looks of one day at five services, at the rate of a schedule with an interval of five
// minutes. The faults are the faults of faultsOfTwoHours, but one fault stays unanswered all day.
func TestSoakIncidents(t *testing.T) {
	began := time.Now()
	_, _, _, all := faultsOfTwoHours(*soakLooks)
	w := watchServices(t, *soakLooks, all)
	t.Logf("soak: incidents: %s took=%s", w.requireFollowed(), time.Since(began).Round(time.Second))
}
