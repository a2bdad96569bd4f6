package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShellQuote(t *testing.T) {
	t.Parallel()
	require.Equal(t, `'it'\''s $HOME'`, ShellQuote("it's $HOME"))
}
