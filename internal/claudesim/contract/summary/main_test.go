package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	const held = `{"Action":"attr","Package":"p","Test":"TestContract/a","Key":"contract-subject","Value":"claude 1"}` + "\n"
	for action, want := range map[string]string{"pass": "0 of 1 cases differ\n", "fail": "1 of 1 cases differ\n"} {
		events := held + `{"Action":"output","Package":"p","Test":"TestContract/a","Output":"    a_test.go:1: said\n"}` + "\n" +
			`{"Action":"` + action + `","Package":"p","Test":"TestContract/a"}` + "\n"
		var printed strings.Builder
		same, err := run(strings.NewReader(events), &printed, log)
		require.NoError(t, err)
		require.Equal(t, action == "pass", same)
		require.True(t, strings.HasSuffix(printed.String(), want), printed.String())
		said, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Equal(t, "    a_test.go:1: said\n", string(said))
	}
	_, err := run(strings.NewReader(""), &strings.Builder{}, filepath.Join(log, "below a file"))
	require.ErrorContains(t, err, "open the log")
}
