//go:build soak && linux

package shell

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	soakScripts    = flag.Int("soak.scripts", 100_000, "scripts that run in the interpreter and in bash; a million take two hours")
	soakScriptSeed = flag.Uint64("soak.seed", 0, "seed of the scripts; 0 chooses one")
)

// maxUnlisted limits the scripts that differ without a class, of 1,000. The log prints each, so that a developer can
// list or mend it. A difference costs a feature: whatever runs is judged at the door.
const maxUnlisted = 1

// TestSoakSameAsBash is TestSameAsBash with many scripts and a new seed.
func TestSoakSameAsBash(t *testing.T) {
	seed := *soakScriptSeed
	if seed == 0 {
		seed = rand.Uint64() //nolint:gosec // scripts, no secrets
	}
	bash, ours := newSides(t)
	counts := map[string]int{}
	const step = 5000
	t.Logf("soak: the same as bash, with -soak.seed=%d", seed)
	for from := 0; from < *soakScripts; from += step {
		compare(t, bash, ours, generated(t, seed, from, min(step, *soakScripts-from)), counts, t.Logf)
	}
	t.Logf("soak: scripts in the interpreter and in bash: %v", counts)
	require.LessOrEqual(t, counts["different"]*1000, *soakScripts*maxUnlisted, "unlisted differences, with -soak.seed=%d", seed)
}
