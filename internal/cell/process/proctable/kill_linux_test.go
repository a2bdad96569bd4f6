package proctable

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHopeless checks after which time Hopeless gives up which processes.
func TestHopeless(t *testing.T) {
	t.Parallel()
	const moment = time.Millisecond
	for name, tt := range map[string]struct {
		left     Remains
		patience time.Duration
		until    time.Duration
	}{
		"all are refused":                        {Remains{Living: 2, Refused: 2}, RefusedPatience, RefusedPatience},
		"all are refused and nobody waits":       {Remains{Living: 2, Refused: 2}, DeathPatience, DeathPatience},
		"some are refused":                       {Remains{Living: 2, Refused: 1}, RefusedPatience, DeathPatience},
		"none is refused":                        {Remains{Living: 2}, RefusedPatience, DeathPatience},
		"none lives, and some are not collected": {Remains{}, RefusedPatience, DeathPatience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.False(t, tt.left.Hopeless(tt.until-moment, tt.patience))
			require.True(t, tt.left.Hopeless(tt.until+moment, tt.patience))
		})
	}
}
