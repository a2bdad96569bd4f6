package year

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
)

// sampled is how many bytes are allocated, on average, from one sample of the heap to the next.
const sampled = 8 << 10

// TestMain lets the runtime take enough samples to see small leaks.
func TestMain(m *testing.M) {
	runtime.MemProfileRate = sampled
	os.Exit(m.Run())
}

// productHeap returns how many bytes that the product has allocated are in use, estimated from samples. It leaves out
// what the simulation has allocated, and what workflows have: the SDK's environment keeps the state of each run.
func productHeap() int64 {
	runtime.GC()
	runtime.GC() // the profile is that of the collection before the last one
	records := make([]runtime.MemProfileRecord, 1<<12)
	count, complete := runtime.MemProfile(records, false)
	for ; !complete; count, complete = runtime.MemProfile(records, false) {
		records = make([]runtime.MemProfileRecord, count+count/4)
	}
	var total float64
	for _, record := range records[:count] {
		if objects, bytes := record.InUseObjects(), float64(record.InUseBytes()); objects > 0 && isProduct(record.Stack()) {
			total += bytes / (1 - math.Exp(-bytes/float64(objects)/sampled))
		}
	}
	return int64(total)
}

// module begins the names of the functions of this module.
const module = "github.com/claudeops/claudeops/"

// isProduct reports whether the product has allocated something: the innermost function of this module is none of the
// simulation, and no workflow has called it.
func isProduct(stack []uintptr) bool {
	innermost := ""
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		name, own := strings.CutPrefix(frame.Function, module)
		if own && strings.HasPrefix(name, "workflows") {
			return false
		}
		if own && innermost == "" {
			innermost = name
		}
		if !more {
			return innermost != "" && !strings.HasPrefix(innermost, "internal/systemtest/year.")
		}
	}
}
