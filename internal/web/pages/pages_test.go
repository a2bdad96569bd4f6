package pages

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryPage(t *testing.T) {
	t.Parallel()
	handler := newSample().serve(t, ada)
	for name, path := range samplePaths() {
		want := http.StatusOK
		if name == "unknown" {
			want = http.StatusNotFound
		}
		got := get(handler, path)
		require.Equal(t, want, got.Code, "%s: %s", path, got.Body)
	}
}
