package calendar

import (
	"archive/zip"
	"go/build"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // so that each test knows the zones of the toolchain

	"github.com/stretchr/testify/require"
)

// everyZone returns the zones of Go's tzdata, those with several names once.
func everyZone(t *testing.T) (zones []*time.Location) {
	t.Helper()
	archive, err := zip.OpenReader(filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, archive.Close()) })
	known := map[uint32]bool{}
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, "/") && !known[file.CRC32] {
			known[file.CRC32] = true
			zones = append(zones, load(t, file.Name))
		}
	}
	require.Greater(t, len(zones), 330)
	return zones
}

func load(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	return zone
}

// TestDaysPartitionTime goes through every change of the clocks in every zone, from 1900 to 2040. Near each, the days
// follow each other without a gap and without an overlap, and each instant belongs to one day, which is the one that
// clocks show.
func TestDaysPartitionTime(t *testing.T) {
	t.Parallel()
	const around = 3
	changes := 0
	for _, zone := range everyZone(t) {
		end := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
		for at := time.Date(1900, 1, 1, 0, 0, 0, 0, zone); at.Before(end); {
			_, next := at.ZoneBounds()
			if next.IsZero() {
				break
			}
			if !next.After(at) { // a fault of ZoneBounds: see lastChange
				at = at.Add(48 * time.Hour)
				continue
			}
			at = next
			changes++
			checkDays(t, zone, label(at)-around, label(at)+around)
			instants := []time.Time{at.Add(-time.Second), at.Add(-1), at, at.Add(1), at.Add(time.Second)}
			for step := -30 * time.Hour; step <= 30*time.Hour; step += 307 * time.Minute {
				instants = append(instants, at.Add(step))
			}
			for _, instant := range instants {
				d := Of(instant)
				if instant.Before(d.Begin(zone)) || !instant.Before(d.End(zone)) {
					t.Fatalf("%s: %s does not belong to %s", zone, instant, d)
				}
				if shown := label(instant); shown != d && label(shown.Begin(zone).Add(-1)) != d {
					t.Fatalf("%s: %s belongs to %s, but that date is not shown again after it", zone, instant, d)
				}
			}
		}
	}
	require.Greater(t, changes, 10_000)
}

// checkDays checks the begin and the end of some days.
func checkDays(t *testing.T, zone *time.Location, from, to Date) {
	t.Helper()
	for d := from; d <= to; d++ {
		begin, end := d.Begin(zone), d.End(zone)
		switch {
		case begin.Equal(end): // the zone skips the day
			if label(begin) <= d {
				t.Fatalf("%s skips %s, but %s is shown at %s", zone, d, label(begin), begin)
			}
			continue
		case end.Before(begin):
			t.Fatalf("%s: %s ends before its begin", zone, d)
		}
		if label(begin) != d || label(begin.Add(-1)) >= d || Of(begin) != d || Of(end.Add(-1)) != d {
			t.Fatalf("%s: %s begins at %s and ends at %s", zone, d, begin, end)
		}
	}
}

// TestDays lists the days of 34 years in every zone: each once, oldest first, and none is missing except the skipped
// ones.
func TestDays(t *testing.T) {
	t.Parallel()
	skipped := map[string][]string{}
	for _, zone := range everyZone(t) {
		from, to := time.Date(1993, 1, 1, 12, 0, 0, 0, zone), time.Date(2027, 1, 1, 12, 0, 0, 0, zone)
		before := Of(from) - 1
		for d := range Days(from, to) {
			for before++; before < d; before++ {
				skipped[before.String()] = append(skipped[before.String()], zone.String())
			}
		}
		require.Equal(t, "2027-01-01", before.String(), zone)
	}
	require.Equal(t, map[string][]string{
		"1993-08-21": {"Kwajalein"},
		"1994-12-31": {"Pacific/Enderbury", "Pacific/Kiritimati"},
		"2011-12-30": {"Pacific/Apia", "Pacific/Fakaofo"},
	}, skipped)
}

func TestBegin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, day, begin, end string }{
		{"UTC", "2026-11-27", "2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z"},
		{"Europe/Berlin", "2026-03-29", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		{"Europe/Berlin", "2026-10-25", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		{"America/Santiago", "2026-09-06", "2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"},
		{"America/Santiago", "2026-04-04", "2026-04-04T00:00:00-03:00", "2026-04-05T00:00:00-04:00"},
		{"America/Havana", "2026-03-08", "2026-03-08T01:00:00-04:00", "2026-03-09T00:00:00-04:00"},
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"},
		{"Asia/Beirut", "2026-03-29", "2026-03-29T01:00:00+03:00", "2026-03-30T00:00:00+03:00"},
		{"Africa/Cairo", "2026-04-24", "2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
		{"Australia/Lord_Howe", "2026-04-05", "2026-04-05T00:00:00+11:00", "2026-04-06T00:00:00+10:30"},
		{"Pacific/Apia", "2011-12-29", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00", "2011-12-31T00:00:00+14:00"},
		{"Pacific/Apia", "2011-12-31", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
		{"Pacific/Kiritimati", "2026-11-27", "2026-11-27T00:00:00+14:00", "2026-11-28T00:00:00+14:00"},
		{"America/St_Johns", "2010-11-07", "2010-11-07T00:00:00-03:30", "2010-11-08T00:00:00-03:30"}, // 00:01 became 23:01
	} {
		d, err := Parse(c.day)
		require.NoError(t, err)
		zone := load(t, c.zone)
		require.Equal(t, []string{c.begin, c.end}, []string{d.Begin(zone).Format(time.RFC3339), d.End(zone).Format(time.RFC3339)}, c)
	}
	minute := time.Date(2010, 11, 7, 2, 30, 30, 0, time.UTC).In(load(t, "America/St_Johns"))
	require.Equal(t, "2010-11-07 00:00:30", minute.Format(time.DateTime))
	require.Equal(t, "2010-11-06", Of(minute).String(), "the clocks show November 6 again after this minute")
}

// TestFarTimes computes with times that no record has. None of it takes long.
func TestFarTimes(t *testing.T) {
	t.Parallel()
	for _, zone := range []*time.Location{time.UTC, load(t, "America/Santiago"), time.FixedZone("", -25*60*60)} {
		for _, seconds := range []int64{math.MinInt32 * 100, -1, 0, 1, math.MaxInt32, math.MaxInt32 * 100} {
			at := time.Unix(seconds, 0).In(zone)
			d := Of(at)
			require.False(t, at.Before(d.Begin(zone)), at)
			require.True(t, at.Before(d.End(zone)), at)
		}
	}
	require.Empty(t, slices.Collect(Days(time.Unix(1, 0), time.Unix(1, 0))))
	require.Empty(t, slices.Collect(Days(time.Unix(2, 0), time.Unix(1, 0))))
	require.Len(t, slices.Collect(Days(time.Unix(0, 0).UTC(), time.Unix(0, 1).UTC())), 1)
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1970-01-01", "2024-02-29", "2026-11-27", "9998-12-31"} {
		d, err := Parse(text)
		require.NoError(t, err)
		require.Equal(t, text, d.String())
	}
	for _, text := range []string{
		"", "today", "2026-02-30", "2026-11-27T00:00:00Z", "0001-01-01", "1969-12-31", "9999-12-31", "26-11-27", "2026-1-1",
	} {
		_, err := Parse(text)
		require.EqualError(t, err, "be a date from 1970-01-01 to 9998-12-31, such as 2026-11-25", text)
	}
}

func TestZone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"UTC": "UTC", "Europe/Berlin": "CET", "America/Santiago": "UTC-03:00", "Australia/Lord_Howe": "UTC+11:00", "Pacific/Apia": "UTC+13:00",
	} {
		require.Equal(t, want, Zone(time.Date(2026, 11, 27, 12, 0, 0, 0, load(t, name))))
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	from := time.Date(2011, 6, 1, 12, 34, 56, 789, load(t, "Pacific/Apia"))
	changes := Changes(from, from.AddDate(0, 11, 0))
	for _, change := range changes {
		require.Zero(t, change.At.Nanosecond())
	}
	require.Len(t, changes, 3) // summer time, the day that was left out, and the end of summer time
	require.Equal(t, "2011-12-31T00:00:00+14:00", changes[1].At.Format(time.RFC3339))
	require.Equal(t, "2011-12-30T00:00:00Z", changes[1].From.Format(time.RFC3339))
	require.Equal(t, 24*time.Hour, changes[1].By)
	require.Equal(t, "2012-04-01T03:00:00+13:00", changes[2].At.Format(time.RFC3339))
	require.Equal(t, "2012-04-01T04:00:00Z", changes[2].From.Format(time.RFC3339))
	require.Equal(t, -time.Hour, changes[2].By)
}
