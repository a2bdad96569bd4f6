package proposal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/proposal"
)

func TestTiming(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		every  time.Duration
		hours  string
		flags  []string
		perDay float64
		text   string
	}{
		{time.Hour, "", []string{"--every", "1h"}, 24, "every 1h"},
		{15 * time.Minute, "", []string{"--every", "15m"}, 96, "every 15m"},
		{90 * time.Minute, "", []string{"--every", "1h30m"}, 16, "every 1h30m"},
		{time.Hour, "7-22", []string{"--cron", "0 7-21 * * *", "--timezone", "Europe/Berlin"}, 15, "every 1h from 07:00 to 22:00"},
		{30 * time.Minute, "7-9", []string{"--cron", "*/30 7,8 * * *", "--timezone", "Europe/Berlin"}, 4, "every 30m from 07:00 to 09:00"},
		{2 * time.Hour, "22-6", []string{"--cron", "0 0,2,4,22 * * *", "--timezone", "Europe/Berlin"}, 4, "every 2h from 22:00 to 06:00"},
		{6 * time.Hour, "8-24", []string{"--cron", "0 8,14,20 * * *", "--timezone", "Europe/Berlin"}, 3, "every 6h from 08:00 to 00:00"},
	} {
		timing := proposal.Timing{Every: tt.every, Zone: "Europe/Berlin"}
		var err error
		timing.From, timing.To, err = proposal.ParseHours(tt.hours)
		require.NoError(t, err)
		require.NoError(t, timing.Check())
		require.Equal(t, tt.flags, timing.Flags())
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
	look := proposal.EstimatedLook("haiku", 0.5)
	require.InDelta(t, 0.08, look.USD, 0.01)
	require.Equal(t, "About $58 a month: 720 looks at $0.08 (an estimate: 12 turns at the list price of claude-haiku-4; your first looks will tell). "+
		"With repairs it is at most $150, the day's budget on each day.", proposal.Month(hourly, look, 5))
	require.Equal(t, "About $2.88 a month: 720 looks at $0.0040 (the average of 12 looks that found nothing wrong). "+
		"Without a day's budget there is no upper limit.", proposal.Month(hourly, proposal.RecordedLook(0.004, 12), 0))
	require.Equal(t, "About $360 a month: 720 looks at $0.50 (its whole budget, because no price of a-model is known). "+
		"With repairs it is at most $30, the day's budget on each day. That budget ends a day after 2 looks.",
		proposal.Month(hourly, proposal.EstimatedLook("a-model", 0.5), 1))
}
