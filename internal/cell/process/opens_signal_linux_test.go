package process_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// TestSignalsEndWaitingOpens opens a named pipe that nobody writes to, with a handler of a signal that comes meanwhile.
// The handler runs, as it does when nobody judges what is opened.
func TestSignalsEndWaitingOpens(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.secretsIn(t)
	_, printed := inside(t, process.ModeSubreaper, s.judged(), "cd "+s.workspace+`
exec 2>&1
mkfifo p
timeout -s KILL 60 perl -e '$SIG{ALRM} = sub { print "handled\n"; exit 0 }; alarm 1; open(F, "<", "p"); print "opened\n"'`)
	require.Equal(t, "handled\n", printed)
}
