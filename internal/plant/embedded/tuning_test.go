package embedded

import (
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
)

// BenchmarkTuning runs the same workflow alternately on a stock and on a tuned server. It reports the median
// milliseconds of a run and the speed-up. Its ns/op is meaningless.
func BenchmarkTuning(b *testing.B) {
	for name, workflow := range map[string]any{"nine-activities": nineActivities, "ten-short-timers": tenShortTimers} {
		b.Run(name, func(b *testing.B) {
			stockClient := benchmarkClient(b, Options{NoUI: true, tuning: stock()})
			tunedClient := benchmarkClient(b, Options{NoUI: true})
			var stockTimes, tunedTimes []time.Duration
			for b.Loop() {
				stockTimes = append(stockTimes, timed(func() { execute(b, stockClient, workflow) }))
				tunedTimes = append(tunedTimes, timed(func() { execute(b, tunedClient, workflow) }))
			}
			stockMedian, tunedMedian := median(stockTimes), median(tunedTimes)
			b.ReportMetric(milliseconds(stockMedian), "stock-ms")
			b.ReportMetric(milliseconds(tunedMedian), "tuned-ms")
			b.ReportMetric(float64(stockMedian)/float64(tunedMedian), "times-quicker")
		})
	}
}

// BenchmarkDurability measures the cost of waiting for the disk: the median of nine activities in memory and on
// a file.
func BenchmarkDurability(b *testing.B) {
	for name, file := range map[string]string{"memory": "", "file": b.TempDir() + "/temporal.db"} {
		b.Run(name, func(b *testing.B) {
			c := benchmarkClient(b, Options{NoUI: true, DatabaseFile: file})
			var times []time.Duration
			for b.Loop() {
				times = append(times, timed(func() { execute(b, c, nineActivities) }))
			}
			b.ReportMetric(milliseconds(median(times)), "median-ms")
		})
	}
}

// BenchmarkStart measures the time until a new server answers.
func BenchmarkStart(b *testing.B) {
	skipShort(b)
	for b.Loop() {
		server, err := Start(b.Context(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := server.Stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// benchmarkClient starts a server and a worker, and runs one workflow to fill the caches.
func benchmarkClient(b *testing.B, o Options) client.Client {
	b.Helper()
	c := dial(b, startServer(b, o).Address())
	startWorker(b, c)
	execute(b, c, nineActivities)
	return c
}

func timed(f func()) time.Duration {
	begin := time.Now()
	f()
	return time.Since(begin)
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
