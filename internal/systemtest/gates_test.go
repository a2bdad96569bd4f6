//go:build linux

package systemtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// TestGates parks one chain for each of the four answers and kills the worker. Another worker must then handle the
// answers.
func TestGates(t *testing.T) {
	t.Parallel()
	parkAndAnswer(t, len(gatedAnswers))
}

// parking holds the measurements of parkAndAnswer.
type parking struct {
	parked, answered, ended time.Duration
	// empty and full are the worker's memory before and after the chains are parked, in megabytes.
	empty, full float64
}

// parkAndAnswer parks chains at gates, kills the worker and starts another one. Then it answers at all gates, with
// each of the four answers in turn.
func parkAndAnswer(t *testing.T, chains int) parking {
	t.Helper()
	claude := simtest.Install(t, claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "Continue this session"}, claudesim.Conclude(resolved())).Named("continued"),
		claudesim.On(claudesim.Match{Prompt: "in a new session, please"}, claudesim.Conclude(allWell())).Named("fixed"),
		concluding("haiku", needsPerson())))
	c, address := startTemporalAt(t)
	environ := environment(t, claude, "CLAUDEOPS_GATE_TIMEOUT=72h", "CLAUDEOPS_GATE_ON_HEALED=keep",
		"CLAUDEOPS_MAX_CONCURRENT_AGENTS=6", "CLAUDEOPS_LOG_LEVEL=warn")
	s := siteOf(t, c, environ)
	first := startWorker(t, environ, address)
	_, err := s.finish(s.startAs("warm-up", map[string]any{"prompt": "in a new session, please", "dry_run": true}))
	require.NoError(t, err)
	empty := residentMemory(t, first.Process.Pid)

	began := time.Now()
	for i := range chains {
		s.startAs(gatedChain(i), map[string]any{"actor": "ben", "force": true}) // all have the same fault
	}
	for i := range chains {
		s.awaitGate(gatedChain(i), "gate-1")
	}
	parked, full := time.Since(began), residentMemory(t, first.Process.Pid)
	first.kill(t)
	startWorker(t, environ, address)

	began = time.Now()
	s.answerAll(chains)
	answered := time.Since(began)
	for i := range chains {
		s.requireAnswered(i)
	}
	return parking{parked, answered, time.Since(began), empty, full}
}

func gatedChain(i int) string { return fmt.Sprintf("gated-%04d", i) }

// gatedAnswers are the answers that chains get in turn. gatedOutcomes are the outcomes that the chains must have
// then.
var (
	gatedAnswers = []escalation.GateAnswer{
		{GateID: "gate-1", Actor: "anna", Action: escalation.GateOverride},
		{GateID: "gate-1", Actor: "anna", Action: escalation.GateAbort},
		{GateID: "gate-1", Actor: "anna", Action: escalation.GateFix, Guidance: "in a new session, please"},
		{GateID: "gate-1", Actor: "anna", Action: escalation.GateContinue},
	}
	gatedOutcomes = []escalation.Outcome{
		escalation.OutcomeOverridden, escalation.OutcomeAborted, escalation.OutcomeHealthy, escalation.OutcomeResolved,
	}
)

// answerAll answers at the gates of all chains, up to 16 at a time.
func (s *site) answerAll(chains int) {
	s.t.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < chains; i = int(next.Add(1)) - 1 {
				answer := gatedAnswers[i%len(gatedAnswers)]
				resolution, err := s.resolve(gatedChain(i), answer)
				if err != nil || resolution.Action != answer.Action {
					s.t.Errorf("chain %d: %+v, %v", i, resolution, err)
				}
			}
		})
	}
	all.Wait()
}

// requireAnswered checks that the i-th chain has the outcome of its answer. For the first chains it also checks the
// records.
func (s *site) requireAnswered(i int) {
	s.t.Helper()
	chain, err := s.finish(s.client.GetWorkflow(s.t.Context(), gatedChain(i), ""))
	require.NoError(s.t, err)
	require.Equal(s.t, gatedOutcomes[i%len(gatedOutcomes)], chain.Outcome, "chain %d: %s %+v", i, chain.Reason, chain.Last())
	require.Len(s.t, chain.Gates, 1)
	require.Equal(s.t, "anna", chain.Gates[0].Answer.Actor)
	if i < 8 { // requireRecorded opens the records each time, and 1,000 chains would show no more
		requireRecorded(s.t, s, chain)
	}
}

// residentMemory returns the resident memory of a process, in megabytes.
func residentMemory(t *testing.T, pid int) float64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if size, found := strings.CutPrefix(line, "VmRSS:"); found {
			kilobytes, err := strconv.Atoi(strings.Fields(size)[0])
			require.NoError(t, err)
			return float64(kilobytes) / 1024
		}
	}
	require.Fail(t, "the process tells no memory")
	return 0
}

// requireRecordedBut checks that the records hold the chain's events and, in addition, events of the given kind.
func requireRecordedBut(t *testing.T, s *site, chain escalation.Chain, kind escalation.EventKind) {
	t.Helper()
	records := s.records()
	var known []escalation.Event
	require.Eventually(t, func() bool { // the worker records them a moment later
		events, err := records.Events(t.Context(), chain.ID)
		known = slices.DeleteFunc(slices.Clone(events), func(event escalation.Event) bool { return event.Kind == kind })
		return err == nil && len(known) < len(events)
	}, testTimeout, 20*time.Millisecond, "what was refused is recorded")
	require.Equal(t, asJSON(t, chain.Events), asJSON(t, asShown(known, chain.Events)))
}
