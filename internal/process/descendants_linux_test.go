package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHopeless checks after which time hopeless gives up which processes.
func TestHopeless(t *testing.T) {
	t.Parallel()
	const moment = time.Millisecond
	for name, tt := range map[string]struct {
		left     remains
		patience time.Duration
		until    time.Duration
	}{
		"all are refused":                        {remains{living: 2, refused: 2}, refusedPatience, refusedPatience},
		"all are refused and nobody waits":       {remains{living: 2, refused: 2}, deathPatience, deathPatience},
		"some are refused":                       {remains{living: 2, refused: 1}, refusedPatience, deathPatience},
		"none is refused":                        {remains{living: 2}, refusedPatience, deathPatience},
		"none lives, and some are not collected": {remains{}, refusedPatience, deathPatience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.False(t, tt.left.hopeless(tt.until-moment, tt.patience))
			require.True(t, tt.left.hopeless(tt.until+moment, tt.patience))
		})
	}
}
