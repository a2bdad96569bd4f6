package claude_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// BenchmarkSessionStart measures the time from the start of a session of each pinned CLI to the execution of its
// program and to its first message, and the processor time of the whole session, in a sandbox in which files are judged
// and in one in which they are not, in turn. The model answers at once. On a busy machine the least figures say most.
func BenchmarkSessionStart(b *testing.B) {
	for _, version := range simtest.Versions(b) {
		b.Run(string(version), func(b *testing.B) {
			at := newBench(b, backend{version: version, real: true}, claudesim.Play(claudesim.Always(claudesim.Say("done"))), nil)
			starts, messages, processor := map[bool][]float64{}, map[bool][]float64{}, map[bool][]float64{}
			for b.Loop() {
				for _, judge := range []bool{false, true} {
					invocation := at.invocation("look")
					invocation.Env = map[string]string{"CLAUDE_CODE_TMPDIR": at.dir} // as a worker sets it: /tmp is not writable
					invocation.Sandbox = &claude.Sandbox{Writable: []string{at.dir}}
					if judge {
						invocation.Sandbox.Opens = &process.Opens{
							Secret: []string{"**/{.env,.env.*,*.key,*.pem,id_rsa}", "**/{secrets,.ssh,.aws}/**", "/etc/{shadow,gshadow}", "/proc/**/{environ,mem}"},
							Kept:   []string{"**/{compose.yaml,.git,.github}{,/**}"}, Clear: []string{"/usr", "/lib", "/lib64", "/bin"},
						}
					}
					began, spent := time.Now(), childrensTime(b)
					var start, message time.Duration
					result, err := at.cli.Run(b.Context(), invocation, func(p claude.Progress) {
						if start == 0 {
							start = time.Since(began)
						}
						if message == 0 && p.SessionID != "" {
							message = time.Since(began)
						}
					})
					require.NoError(b, err)
					require.True(b, result.Confined, result.Sandbox)
					starts[judge] = append(starts[judge], start.Seconds()*1000)
					messages[judge] = append(messages[judge], message.Seconds()*1000)
					processor[judge] = append(processor[judge], (childrensTime(b)-spent).Seconds()*1000)
				}
			}
			for name, took := range map[string]map[bool][]float64{"program": starts, "message": messages, "processor": processor} {
				b.ReportMetric(median(took[false]), name+"-ms")
				b.ReportMetric(medianDifference(took), name+"-more-ms")
				b.ReportMetric(slices.Min(took[true])-slices.Min(took[false]), name+"-least-more-ms")
			}
		})
	}
}

// childrensTime returns the processor time of all children that have ended.
func childrensTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// medianDifference returns the median of what judging costs in pairs of runs.
func medianDifference(took map[bool][]float64) float64 {
	var differences []float64
	for i, judged := range took[true] {
		differences = append(differences, judged-took[false][i])
	}
	return median(differences)
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
