package pages

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/web/browsertest"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

// TestScreenshots writes pictures of all pages to the folder that SCREENSHOTS names. ONLY names some pages.
func TestScreenshots(t *testing.T) {
	folder, only := os.Getenv("SCREENSHOTS"), os.Getenv("ONLY")
	if folder == "" {
		t.Skip("writes pictures only if SCREENSHOTS names a folder")
	}
	require.NoError(t, os.MkdirAll(folder, 0o750))
	server := httptest.NewServer(newSample().serve(t, ada))
	t.Cleanup(server.Close)
	tab := browsertest.Open(t)
	for name, path := range samplePaths() {
		if only != "" && !strings.Contains(","+only+",", ","+name+",") {
			continue
		}
		for look, set := range map[string]func(){
			"light":  func() { tab.Look("light", 1080) },
			"dark":   func() { tab.Look("dark", 1080) },
			"narrow": func() { tab.Look("light", 360) },
		} {
			set()
			tab.Show(server.URL + path)
			file := filepath.Join(folder, fmt.Sprintf("%s-%s.png", name, look))
			require.NoError(t, os.WriteFile(file, tab.Picture(), 0o600))
		}
	}
}
