package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintableDropsWhatATerminalObeys(t *testing.T) {
	t.Parallel()
	require.Equal(t, "red[31m and two lines", Printable("red\x1b[31m and\ntwo\tlines\u202e", 80))
	require.Equal(t, "abc…", Printable("abcdefgh", 4))
}
