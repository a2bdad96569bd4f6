package plaintext

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0s": -time.Second, "59s": 59900 * time.Millisecond, "1m": 119 * time.Second, "2h5m": 125 * time.Minute, "47h59m": 48*time.Hour - time.Second,
		"2d0h": 48 * time.Hour, "3d4h": 76*time.Hour + 59*time.Minute,
	} {
		require.Equal(t, want, Span(d))
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0.0s": 0, "0.3s": 280 * time.Millisecond, "45s": 45 * time.Second, "7m45s": 7*time.Minute + 45*time.Second + 300*time.Millisecond,
	} {
		require.Equal(t, want, Duration(d))
	}
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for want, usd := range map[string]float64{"$0.00": 0, "$0.0004": 0.0004, "$0.03": 0.03, "$2.50": 2.5} {
		require.Equal(t, want, Dollars(usd))
	}
}

func TestAboutAndLength(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0 s": -time.Second, "30 s": 30 * time.Second, "12 min": 12*time.Minute + 20*time.Second, "3 h": 200 * time.Minute,
		"47 h": 47*time.Hour + 20*time.Minute, "2 days": 47*time.Hour + 40*time.Minute, "7 days": 168 * time.Hour,
	} {
		require.Equal(t, want, About(d))
	}
	for want, d := range map[string]time.Duration{
		"0 s": 0, "90 min": 90 * time.Minute, "1 h": time.Hour, "24 h": 24 * time.Hour, "7 days": 168 * time.Hour, "20 s": 20 * time.Second,
	} {
		require.Equal(t, want, Length(d))
	}
}
