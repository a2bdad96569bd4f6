package guard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContainsNumber(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8233": true, "http://localhost:8233/": true, "127.0.0.1:8233": true, "--port=8233": true, "x.8233": true, ".8233": true,
		"18233": false, "82330": false, "0.8233": false, "sleep 1.8233": false, "1.8233:8233": true,
	} {
		require.Equal(t, want, containsNumber(text, 8233), text)
	}
}
