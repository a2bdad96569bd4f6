package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/process"
)

// script returns a CLI that is a shell script, and an invocation of it.
func script(t *testing.T, text string) (*CLI, Invocation) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claude")
	require.NoError(t, process.WriteProgram(path, []byte("#!/bin/sh\n"+text)))
	cli := cliOf("2.1.332")
	cli.path = path
	cli.options.ConfigDir = t.TempDir()
	cli.options.Environ = []string{"PATH=" + os.Getenv("PATH")}
	return cli, Invocation{
		SessionID: ownID, Prompt: "look", Model: "haiku", Dir: t.TempDir(),
		Limits: Limits{Wall: time.Minute, Grace: 200 * time.Millisecond},
	}
}

func TestALastLineNeedsNoEnd(t *testing.T) {
	t.Parallel()
	cli, invocation := script(t, "printf '%s' '"+good+"'")
	result, err := cli.Run(t.Context(), invocation, nil)
	require.NoError(t, err)
	require.Equal(t, "fine", result.Text)
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ script, want string }{
		"in all":  {"yes '{}' | head -c 20000000; exec sleep 300", "printed more than 1000000 bytes"},
		"by line": {"yes '{}' | tr -d '\\n' | head -c 20000000; exec sleep 300", "printed a line of more than 100000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli, invocation := script(t, tc.script)
			cli.bounds = bounds{output: 1_000_000, line: 100_000}
			if strings.Contains(tc.want, "line") {
				cli.bounds.output = 0
			}
			_, err := cli.Run(t.Context(), invocation, nil)
			require.Equal(t, KindOutputTooLong, KindOf(err), "%v", err)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestTheSpoolTellsWhetherThereIsRoom(t *testing.T) {
	t.Parallel()
	roomy, err := newSpool(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(roomy.close)
	require.NoError(t, roomy.probe())

	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("needs /dev/full: %v", err)
	}
	spool := &spool{file: full, dir: "/state"}
	t.Cleanup(spool.close)
	require.ErrorIs(t, spool.probe(), errDiskFull)
	require.ErrorContains(t, spool.probe(), "the disk of /state is full")
}
