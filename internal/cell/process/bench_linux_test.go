package process_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/binfmt"
	"github.com/claudeops/claudeops/internal/cell/process"
)

// BenchmarkDeathOfTheWorker measures the time from the death of a worker to the death of its tree. The time must stay
// well below a second.
func BenchmarkDeathOfTheWorker(b *testing.B) {
	self, err := os.Executable()
	require.NoError(b, err)
	for name, tree := range shapes() {
		for _, mode := range trees(b) {
			b.Run(name+"/"+string(mode), func(b *testing.B) {
				var total, longest time.Duration
				for range b.N {
					took := killWorker(b, self, mode, tree)
					total += took
					longest = max(longest, took)
				}
				b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms-alive")
				b.ReportMetric(float64(longest.Milliseconds()), "ms-longest")
			})
		}
	}
}

// BenchmarkSandbox measures the run of a program that does nothing, in a sandbox. The sandbox is like that of a worker
// with its state in /var/lib. The difference to BenchmarkRun is the cost of the launcher and the sandbox's rules.
func BenchmarkSandbox(b *testing.B) {
	requireLandlock(b)
	state, err := os.MkdirTemp("/var/lib", "claudeops-bench-") //nolint:usetesting // where it mostly is
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { require.NoError(b, os.RemoveAll(state)) })
	sandbox := &process.Sandbox{Hidden: []string{state, "/home", "/root"}, Readable: []string{"/usr/bin"}, Writable: []string{b.TempDir()}}
	limited := *sandbox
	limited.Executable = executableFiles(b)
	judged := limited
	judged.Opens = &process.Opens{Secret: []string{"**/.env"}}
	for _, mode := range trees(b) {
		for name, sandbox := range map[string]*process.Sandbox{"": sandbox, "/execution-limited": &limited, "/files-judged": &judged} {
			b.Run(string(mode)+name, func(b *testing.B) {
				for b.Loop() {
					_, err := process.Run(b.Context(), process.Spec{Path: "/bin/true", Containment: mode, Sandbox: sandbox})
					require.NoError(b, err)
				}
			})
		}
	}
}

// executableFiles returns as many files as the built-in policy lets a tier execute.
func executableFiles(b *testing.B) (files []string) {
	b.Helper()
	var programs binfmt.Programs
	files = programs.With("/bin/true")
	entries, err := os.ReadDir("/usr/bin")
	require.NoError(b, err)
	for _, entry := range entries[:min(len(entries), 150)] {
		files = append(files, programs.With("/usr/bin/"+entry.Name())...)
	}
	return files
}

// BenchmarkOpen measures the opening of a file in a sandbox that judges it, and in one that does not. On a busy machine
// the time of the processor says more than the time that passes; it contains the start of the tree, so open many files
// (-benchtime 50000x). Compare the figures with BenchmarkNullListener.
func BenchmarkOpen(b *testing.B) {
	requireOpens(b)
	s := newSite(b)
	s.secretsIn(b)
	for name, file := range map[string]string{"system": "/usr/bin/env", "judged": s.workspace + "/notes", "relative": "notes", "directory": ".", "own in proc": "/proc/self/statm", "missing": "/etc/missing"} {
		for _, judge := range []bool{false, true} {
			sandbox := s.judged()
			if !judge {
				sandbox.Opens = nil
			}
			b.Run(fmt.Sprintf("%s/judge=%t", name, judge), func(b *testing.B) {
				script := `use Time::HiRes "time"; my ($n, $file) = @ARGV; my $t = time;
					if ($file eq ".") { for (1..$n) { opendir(D, $file) or die; closedir D } }
					else { for (1..$n) { open(F, "<", $file) or $file =~ /missing/ or die; close F } } printf "%.3f", (time - $t) * 1e6 / $n`
				var printed strings.Builder
				spent := childrensTime(b)
				_, err := process.Run(b.Context(), process.Spec{
					Path: "/usr/bin/perl", Args: []string{"-e", script, strconv.Itoa(b.N), file}, Dir: s.workspace,
					Sandbox: sandbox, Stdout: &printed, Containment: process.ModeSubreaper,
				})
				require.NoError(b, err)
				each, err := strconv.ParseFloat(printed.String(), 64)
				require.NoError(b, err)
				b.ReportMetric(each, "us/open")
				b.ReportMetric(float64((childrensTime(b)-spent).Microseconds())/float64(b.N), "us-processor/open")
			})
		}
	}
}

// childrensTime returns the processor time of all children that have ended.
func childrensTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
