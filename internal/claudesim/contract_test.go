package claudesim_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

const verdictSchema = `{"type":"object","properties":{"status":{"type":"string"}},"required":["status"]}`

// contractCase is one situation that a driver must handle: launches of a CLI with one home and one working directory.
type contractCase struct {
	name     string
	scenario claudesim.Scenario
	launches []launch
	// want checks the observations of each CLI. In every case the stand-in is also compared with the real CLI.
	want func(t *testing.T, v claudesim.Version, o []observation)
	// forget removes values that differ between runs from the observations, before the stand-in is compared with the
	// real CLI. It may be nil.
	forget func(o []observation)
	// endsEarly reports whether the real CLI has exited before it had printed everything. After a signal it sometimes
	// does so, more often on a busy machine. The harness then asks it again. The function may be nil.
	endsEarly func(o []observation) bool
}

// TestContract runs every case on the stand-in of each release, and on the newest real CLI. It requires that a driver
// cannot distinguish them. `make contract` runs it on the real CLI of each release; these are pinned, so an older one
// changes only with the stand-in.
func TestContract(t *testing.T) {
	t.Parallel()
	for _, v := range simtest.Versions(t) {
		for _, c := range contractCases() {
			t.Run(simtest.Number(t, v)+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, v)
			})
		}
	}
}

func (c contractCase) run(t *testing.T, v claudesim.Version) {
	var played, measured []observation
	t.Run("stand-in", func(t *testing.T) {
		played = standIn(t, c.scenario, v).observe(t, c.launches)
		c.want(t, v, played)
	})
	if !slices.Contains(simtest.NewestVersions(t), v) {
		return
	}
	t.Run("real", func(t *testing.T) {
		const tries = 12
		for range tries {
			measured = realCLI(t, c.scenario, v).observe(t, c.launches)
			if c.endsEarly == nil || !c.endsEarly(measured) {
				break
			}
		}
		c.want(t, v, measured)
	})
	if played == nil || measured == nil {
		return // skipped, or failed with a report
	}
	if c.forget != nil {
		c.forget(played)
		c.forget(measured)
	}
	for i := range measured {
		simtest.Compare(t, i+1, played[i], measured[i])
	}
}

func contractCases() []contractCase {
	var cases []contractCase
	for _, group := range [][]contractCase{conversationCases(), apiErrorCases(), endingCases(), thinkingCases(), usageCases(), limitCases(), toolCases(), hookCases(), signalCases()} {
		cases = append(cases, group...)
	}
	return cases
}

// last returns the last result of the last launch.
func last(t *testing.T, o []observation) resultView {
	t.Helper()
	results := o[len(o)-1].Results
	require.NotEmpty(t, results, "no result; stderr: %s", o[len(o)-1].Stderr)
	return results[len(results)-1]
}

func fresh(prompt string, more ...string) launch {
	return launch{prompt: prompt, args: append([]string{"--model", "haiku", "--session-id", idA, "--tools", "Bash"}, more...)}
}

// TestVersion checks the version that each CLI reports.
func TestVersion(t *testing.T) {
	t.Parallel()
	for _, v := range simtest.Versions(t) {
		for name, start := range map[string]func(*testing.T, claudesim.Scenario, claudesim.Version) subject{"stand-in": standIn, "real": realCLI} {
			t.Run(simtest.Number(t, v)+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := start(t, claudesim.Play(claudesim.Always(claudesim.Say("hi"))), v)
				dir := t.TempDir()
				out := s.launch(t, place{home: dir, dir: dir}, launch{raw: true, args: []string{"--version"}})
				require.Equal(t, output{stdout: simtest.Number(t, v) + " (Claude Code)\n"}, out)
			})
		}
	}
}
