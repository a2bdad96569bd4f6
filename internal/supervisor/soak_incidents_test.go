//go:build soak

package supervisor_test

import (
	"testing"
	"time"
)

// TestSoakIncidents looks at five services as often as a schedule does in a day at an interval of five minutes. The faults
// are those of two hours, but one of them is unanswered all day.
func TestSoakIncidents(t *testing.T) {
	began := time.Now()
	_, _, _, all := faultsOfTwoHours(*soakLooks)
	w := watchServices(t, *soakLooks, all)
	t.Logf("soak: incidents: %s took=%s", w.requireFollowed(), time.Since(began).Round(time.Second))
}
