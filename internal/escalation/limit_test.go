package escalation

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestParseLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Limit{
		"3/1h":    {3, Duration(time.Hour)},
		"0 / 90m": {0, Duration(90 * time.Minute)},
		"none":    {},
		"":        {},
	} {
		got, err := ParseLimit(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"3":      "write a number, a slash and a duration, such as 3/1h, or none",
		"x/1h":   "write a number",
		"3/1":    "write a number",
		"3/1h/2": "write a number",
		"-1/1h":  "the number must not be negative",
		"1/0h":   "the duration must be above zero",
		"1/-1h":  "the duration must be above zero",
	} {
		_, err := ParseLimit(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestLimitSpelling(t *testing.T) {
	t.Parallel()
	for want, limit := range map[string]Limit{
		"none": {}, "2/4h": {2, Duration(4 * time.Hour)}, "0/1m30s": {0, Duration(90 * time.Second)},
	} {
		require.Equal(t, want, limit.String())
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, "limit")
		encoded, err := json.Marshal(limit)
		require.NoError(t, err)
		var again Limit
		require.NoError(t, json.Unmarshal(encoded, &again))
		require.Equal(t, limit, again)
	})
}

func drawLimit(t *rapid.T, name string) Limit {
	return Limit{
		Max:    rapid.IntRange(0, 4).Draw(t, name),
		Window: Duration(rapid.Int64Range(1, int64(30*time.Hour)).Draw(t, name+" window")),
	}
}

func TestUse(t *testing.T) {
	t.Parallel()
	two := Limit{2, Duration(time.Hour)}
	ago := func(minutes ...int) (events []time.Time) {
		for _, m := range minutes {
			events = append(events, noon.Add(-time.Duration(m)*time.Minute))
		}
		return events
	}
	in := func(minutes int) time.Time { return ago(-minutes)[0] }
	for name, test := range map[string]struct {
		limit  Limit
		events []time.Time
		want   Use
	}{
		"nothing yet":              {two, nil, Use{Free: true}},
		"one":                      {two, ago(10), Use{Used: 1, Free: true, Last: in(-10)}},
		"all":                      {two, ago(10, 40), Use{Used: 2, FreeAt: in(20), Last: in(-10)}},
		"more than all":            {two, ago(10, 40, 50), Use{Used: 3, FreeAt: in(20), Last: in(-10)}},
		"what leaves this instant": {two, ago(10, 60), Use{Used: 1, Free: true, Last: in(-10)}},
		"what is long over":        {two, ago(300), Use{Free: true, Last: in(-300)}},
		"another host's clock":     {two, ago(-5, 10), Use{Used: 2, FreeAt: in(50), Last: in(5)}},
		"no limit":                 {Limit{}, ago(1, 2, 3), Use{Free: true, Last: in(-1)}},
		"never":                    {Limit{0, Duration(time.Hour)}, nil, Use{}},
		"never, and yet":           {Limit{0, Duration(time.Hour)}, ago(1), Use{Used: 1, Last: in(-1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.want.Limit = test.limit
			require.Equal(t, test.want, test.limit.use(test.events, noon))
		})
	}
}

// TestUseKeepsTheLimit adds events, each as soon as the limit allows it. It checks FreeAt, and that no window has more
// events than the limit allows.
func TestUseKeepsTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, "limit")
		limit.Max++ // with a limit of 0 no slot ever becomes free
		now := noon
		var events []time.Time
		for i := range rapid.IntRange(1, 12).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(limit.Window)).Draw(t, fmt.Sprint("pause ", i))))
			use := limit.use(rapid.Permutation(events).Draw(t, "order"), now)
			if !use.Free {
				require.True(t, use.FreeAt.After(now))
				require.False(t, limit.use(events, use.FreeAt.Add(-1)).Free, "a moment earlier it was not free")
				now = use.FreeAt
				require.True(t, limit.use(events, now).Free, "at the time that was told it is free")
			}
			events = append(events, now)
			require.LessOrEqual(t, limit.use(events, now).Used, limit.Max)
		}
	})
}
