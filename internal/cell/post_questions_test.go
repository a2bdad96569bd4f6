package cell_test

import (
	"bytes"
	"encoding/json"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/door"
)

// dial connects to a post.
func dial(t *testing.T, post *cell.Post) net.Conn {
	t.Helper()
	connection, err := net.Dial("unix", post.Environment("", "")[door.SocketVariable])
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// TestUnfinishedQuestionsAreBounded sends the beginnings of many large questions. The worker takes in little of them,
// answers small questions meanwhile, and a large one when the others have gone.
func TestUnfinishedQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	post := s.open(1)
	beginning := append([]byte(`{"hook":"`), bytes.Repeat([]byte("x"), 15<<20)...)
	const many = 40
	var taken atomic.Int64
	var writers sync.WaitGroup
	connections := make([]net.Conn, many)
	for i := range connections {
		connection := dial(t, post)
		connections[i] = connection
		writers.Go(func() {
			_ = connection.SetWriteDeadline(time.Now().Add(2 * time.Second)) // the worker does not read the rest
			n, _ := connection.Write(beginning)
			taken.Add(int64(n))
		})
	}
	writers.Wait()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("%d MB sent, %d MB of memory", taken.Load()>>20, memory.HeapSys>>20)
	require.Less(t, taken.Load(), int64(len(beginning)+many<<20), "one large question, and the buffers of the others")
	require.Contains(t, string(ask(t, post, calls(t, "1", "ls")).Output), `"allow"`)

	for _, connection := range connections {
		require.NoError(t, connection.Close())
	}
	large := strings.Repeat("x", 1<<20) // it arrives within largeLimit on any machine
	content, err := json.Marshal(map[string]string{"file_path": "/etc/x", "content": large})
	require.NoError(t, err)
	answer := ask(t, post, door.Question{Hook: json.RawMessage(
		`{"hook_event_name":"PreToolUse","tool_name":"Write","tool_use_id":"large","tool_input":` + string(content) + `}`)})
	require.Contains(t, string(answer.Output), `"deny"`)
	require.NoError(t, post.Close())
}
