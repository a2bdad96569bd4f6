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

func TestExactKeys(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]bool{
		`{"file_path":"a"}`: true, `{"description":"x","Other":1}`: true, `{}`: true,
		`{"file_path":"/etc/x","FILE_PATH":"./ok"}`: false, `{"Command":"ls"}`: false, `[]`: false, `"x"`: false,
	} {
		require.Equal(t, want, exactKeys([]byte(input)) == nil, input)
	}
}
