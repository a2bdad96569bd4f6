package proposal_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/desk/proposal"
)

func TestTiming(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		every           time.Duration
		given           string
		interval, hours string // of the flags
		cron            string
		perDay          float64
		text            string
	}{
		{time.Hour, "", "1h", "", "", 24, "every 1h"},
		{15 * time.Minute, "", "15m", "", "", 96, "every 15m"},
		{90 * time.Minute, "", "1h30m", "", "", 16, "every 1h30m"},
		{time.Hour, "7-22", "1h", "7-22", "0 7-21 * * *", 15, "every 1h, the first at 07:00, the last at 21:00"},
		{30 * time.Minute, "7-9", "30m", "7-9", "*/30 7,8 * * *", 4, "every 30m, the first at 07:00, the last at 08:30"},
		{2 * time.Hour, "22-6", "2h", "22-6", "0 0,2,4,22 * * *", 4, "every 2h, the first at 22:00, the last at 04:00"},
		{6 * time.Hour, "8-24", "6h", "8-0", "0 8,14,20 * * *", 3, "every 6h, the first at 08:00, the last at 20:00"},
	} {
		timing := proposal.Timing{Every: tt.every, Zone: "Europe/Berlin"}
		var err error
		timing.From, timing.To, err = proposal.ParseHours(tt.given)
		require.NoError(t, err)
		require.NoError(t, timing.Check())
		flags := []string{"--every", tt.interval}
		if tt.hours != "" {
			flags = append(flags, "--hours", tt.hours, "--timezone", "Europe/Berlin")
		}
		require.Equal(t, flags, timing.Flags())
		require.Equal(t, tt.cron, timing.Cron())
		require.InDelta(t, tt.perDay, timing.PerDay(), 1e-9)
		require.Equal(t, tt.text, timing.String())
	}
	for _, hours := range []string{"7", "a-b", "7-25", "-1-3", "7-7", "24-7"} {
		_, _, err := proposal.ParseHours(hours)
		require.EqualError(t, err, "be two hours of the day, such as 7-22, or nothing for the whole day", hours)
	}
	require.EqualError(t, proposal.Timing{Every: time.Minute}.Check(), "be between 5m and 24h")
	require.ErrorContains(t, proposal.Timing{Every: 45 * time.Minute, From: 7, To: 9}.Check(), "divide an hour or be whole hours")
}

func TestMonth(t *testing.T) {
	t.Parallel()
	hourly := proposal.Timing{Every: time.Hour}
	named := proposal.EstimateLook(proposal.Measured{Looks: 2, MedianUSD: 9}, proposal.Model{Alias: "haiku", FullName: "claude-haiku-5-5", CLI: "2.1.332"})
	require.Equal(t, "About $5.80 a month: 720 looks at $0.0081 (an estimate: 12 turns at the prices of claude-haiku-5-5, which claude 2.1.332 takes for haiku, "+
		"as of 2026-11-27; from the third look on, what yours cost). With repairs it is at most $150, the day's budget on each day.", proposal.Month(hourly, named, 5, true))
	require.NotContains(t, proposal.Month(hourly, named, 5, false), "150", "without repairs")
	old := proposal.EstimateLook(proposal.Measured{}, proposal.Model{Alias: "haiku", FullName: "claude-haiku-4-5-20251001", CLI: "2.1.286"})
	require.InDelta(t, 10*named.USD, old.USD, 1e-9)
	require.InDelta(t, named.USD, proposal.EstimateLook(proposal.Measured{}, proposal.Model{Alias: "haiku"}).USD, 1e-9, "without a CLI, as the newest names it")
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	measured := proposal.EstimateLook(proposal.Measured{Looks: 3, MedianUSD: 0.004, First: day, Last: day.AddDate(0, 0, 1)}, proposal.Model{Alias: "haiku"})
	require.Equal(t, "About $2.88 a month: 720 looks at $0.0040 (the median of 3 looks that found nothing wrong, 2026-11-20 to 2026-11-21). "+
		"Without a day's budget there is no upper limit.", proposal.Month(hourly, measured, 0, true))
	require.Equal(t, "About $360 a month: 720 looks at $0.50 (its whole budget, because no price of a-model is known). "+
		"The day's budget ends a day after 2 looks.",
		proposal.Month(hourly, proposal.EstimateLook(proposal.Measured{}, proposal.Model{Alias: "a-model", BudgetUSD: 0.5}), 1, false))
}

// TestReadmeSaysWhatALookCosts compares the figures of the documentation with the estimate.
func TestReadmeSaysWhatALookCosts(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	month := 720 * proposal.EstimateLook(proposal.Measured{}, proposal.Model{Alias: "haiku"}).USD
	require.Contains(t, string(readme), fmt.Sprintf("An hourly look costs about $%.0f a month by estimate (prices as of %s)", month, claude.PricesMeasured))
}
