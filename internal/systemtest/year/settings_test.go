package year

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/config"
)

// The forms of settings that have a smallest and a largest value.
var (
	isNumber   = regexp.MustCompile(`^\d+(\.\d+)?$`)
	isDuration = regexp.MustCompile(`^(\d+[hmsd])+$`)
	isLimit    = regexp.MustCompile(`^\d+/(\d+[hmsd])+$`)
)

// unlived lists settings whose values concern what a simulated life does not have: processes, sockets and files of this
// machine.
var unlived = []string{
	"SESSION_DISK", "STOP_GRACE", "FIRST_BYTE_TIMEOUT", "IDLE_TIMEOUT", "API_RETRIES", "DATABASE_CONNECTIONS", "DRAIN_TIMEOUT",
}

// extremes returns the values at which a setting is tried: 0, 1 and its largest value; none if it has no such values.
// The largest value is the largest that the configuration accepts of some.
func extremes(environ []string, setting config.Setting) (values []string) {
	name := strings.TrimPrefix(setting.Name, "CLAUDEOPS_")
	if slices.Contains(unlived, name) || strings.HasPrefix(name, "WEB_") || strings.HasPrefix(name, "LOG_") || setting.Secret {
		return nil
	}
	var largest []string
	switch value := setting.Value; {
	case isNumber.MatchString(value):
		values, largest = []string{"0", "1"}, []string{"1000000000", "1000000", "1000", "100", "50", "10", "3"}
	case isDuration.MatchString(value):
		values, largest = []string{"0s", "1s"}, []string{"1000000h", "87600h", "8760h", "720h", "168h", "24h", "1h", "1m", "10s"}
	case isLimit.MatchString(value):
		values, largest = []string{"0/1h", "1/1s", "1/1h"}, []string{"1000000/8760h", "1000/8760h", "50/8760h", "50/720h"}
	default:
		return nil
	}
	accepted := func(value string) bool {
		_, err := config.Load(append(slices.Clone(environ), setting.Name+"="+value))
		return err == nil
	}
	if n := slices.IndexFunc(largest, accepted); n >= 0 {
		values = append(values, largest[n])
	}
	return slices.DeleteFunc(values, func(value string) bool { return !accepted(value) })
}

// allExtremes returns all settings with their extreme values, as "NAME=value".
func allExtremes(t *testing.T) (all [][]string) {
	t.Helper()
	environ := []string{"HOME=" + t.TempDir(), "CLAUDEOPS_AGENT_USER=none", "CLAUDEOPS_SANDBOX=off"}
	cfg, err := config.Load(environ)
	require.NoError(t, err)
	for _, setting := range cfg.Settings() {
		var values []string
		for _, value := range extremes(environ, setting) {
			values = append(values, strings.TrimPrefix(setting.Name, "CLAUDEOPS_")+"="+value)
		}
		if len(values) > 0 {
			all = append(all, values)
		}
	}
	require.Greater(t, len(all), 20, "the settings that have numbers")
	return all
}

// zone returns a time zone.
func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	found, err := time.LoadLocation(name)
	require.NoError(t, err)
	return found
}

// changes are nights in which clocks change, or in which a day is missing.
var changes = []struct {
	zone  string
	night time.Time
}{
	{"Europe/Berlin", time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)},
	{"America/Santiago", time.Date(2026, 9, 6, 0, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, 10, 4, 0, 0, 0, 0, time.UTC)},
	{"Pacific/Apia", time.Date(2011, 12, 30, 0, 0, 0, 0, time.UTC)},
}

// TestSettings lives for days with random settings at 0, 1 and their largest values, over nights in which clocks
// change.
func TestSettings(t *testing.T) {
	skipUnderRace(t)
	all := allExtremes(t)
	seed := uint64(1)
	for _, change := range changes {
		t.Run(change.zone, func(t *testing.T) {
			draws := chances(seed)
			var settings []string
			for s, values := range all {
				if draws.in(12, "setting", s) {
					settings = append(settings, values[draws.draw(len(values), "value", s)])
				}
			}
			t.Log(settings)
			runLife(t, life{seed: seed, days: 3, begin: change.night.Add(-36 * time.Hour), zone: zone(t, change.zone), settings: settings})
		})
		seed++
	}
}
