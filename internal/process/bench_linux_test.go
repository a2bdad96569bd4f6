package process_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkDeathOfTheWorker measures how long trees live on when their worker is killed, as an
// outside watcher sees it. It must stay well below a second.
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
