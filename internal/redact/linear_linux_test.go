package redact

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// masking returns the shortest of a few times that masking a text takes of a processor. What else runs on the machine
// adds nothing to it.
func masking(t *testing.T, text string) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := New([]string{"DB_PASSWORD=hunter22-1"})
	shortest := time.Duration(1<<63 - 1)
	for range 3 {
		start := processorTime(t)
		_ = r.Text(text)
		shortest = min(shortest, processorTime(t)-start)
	}
	return shortest
}

// processorTime returns the time that this thread has had a processor.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used))
	return time.Duration(used.Nano())
}

// TestHostileSizes masks texts that make masking slow. Four times the text takes about four times as long, and not
// sixteen times.
func TestHostileSizes(t *testing.T) {
	for name, part := range map[string]string{
		"beginnings of masks": "[masked: ", "beginnings of labels": "[masked: token", "separators": "psk=$,!,!,!,!,!,!", "base64": "cGFzc3dvcmQ9JHgK",
		"manifests": "kind: Secret\ndata:\n  a: b\n", "kinds": "kind: Secret ", "objects": `{"kind": "Secret", "data": {"a": ""`,
	} {
		const size = 256 << 10
		once, more := masking(t, strings.Repeat(part, size/len(part))), masking(t, strings.Repeat(part, 4*size/len(part)))
		require.Less(t, more, 9*once, name)
	}
}

// TestHostileValues masks names with values whose end is far away. It takes not much longer than with blanks in place
// of what makes it far: then each value ends at once.
func TestHostileValues(t *testing.T) {
	blanks := strings.NewReplacer(",", " ", ";", " ", "s:", "s ")
	for _, part := range []string{"psk=$,!,!,!,!,!,!", "token=$,!", "pwd=a,!,!,!,!", "psk:a;!;!;!;!;!", "pwd=,!,!,!,!", "pwd($,!", "- passwords:\n"} {
		text := strings.Repeat(part, (64<<10)/len(part))
		require.Less(t, masking(t, text), 16*masking(t, blanks.Replace(text)), part)
	}
}
