//go:build soak

package year

import (
	"fmt"
	"testing"
	"time"
)

// TestSoakYears lives with a dozen installations for a year each, in five zones, with and without retention. It prints
// the figures of each year.
func TestSoakYears(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Pacific/Apia"}
	seed := uint64(100)
	for n := range 12 {
		var settings []string
		if n%2 == 1 {
			settings = append(settings, fmt.Sprintf("RETENTION=%dh", 24*[]int{31, 45, 90}[n/2%3]))
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			runLife(t, life{
				seed: seed, days: 365, begin: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), zone: zone(t, zones[n%len(zones)]), settings: settings,
			})
		})
		seed++
	}
}

// TestSoakSettings lives for some days with each setting at 0, 1 and its largest value, one at a time.
func TestSoakSettings(t *testing.T) {
	seed := uint64(1000)
	for _, values := range allExtremes(t) {
		for _, setting := range values {
			t.Run(setting, func(t *testing.T) {
				runLife(t, life{
					seed: seed, days: 3, begin: time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC), zone: zone(t, "Europe/Berlin"),
					settings: []string{setting},
				})
			})
		}
		seed++
	}
}

// TestSoakHectic lives through hectic days with a hundred seeds.
func TestSoakHectic(t *testing.T) { runHectic(t, 1000, 100) }
