package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInstructionsOfServices(t *testing.T) {
	t.Parallel()
	setting, file := servicesAt(t, "version: 1\nservices:\n- {name: web, runbook_file: runbooks/web.md, look_file: web-look.md}\n")
	dir := filepath.Dir(file)
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	sentence := func() string { return problemsOf(t, setting)[0].Sentence }
	require.Contains(t, sentence(), `service "web": runbook_file: open `+dir+"/runbooks/web.md: no such file or directory.")
	write("runbooks/web.md", strings.Repeat("ä", MaxInstructions))
	write("web-look.md", strings.Repeat("ä", MaxInstructions+1))
	require.Contains(t, sentence(), `service "web": look_file: `+dir+"/web-look.md has more than 8000 characters.")
	write("web-look.md", "a\xff")
	require.Contains(t, sentence(), "web-look.md is no text in UTF-8.")
	write("web-look.md", "Ask /health.")
	service := load(t, setting).Services.Catalog.Services()[0]
	require.Equal(t, dir+"/runbooks/web.md", service.RunbookFile)
	text, err := ReadInstructions(service.LookFile)
	require.NoError(t, err)
	require.Equal(t, "Ask /health.", text)

	for _, path := range []string{"../web.md", "/etc/hostname"} {
		away, _ := servicesAt(t, "version: 1\nservices:\n- {name: web, look_file: "+path+"}\n")
		require.Contains(t, problemsOf(t, away)[0].Sentence, `look_file is "`+path+`", and must be a path below the directory of the services file.`)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	_, err = ReadInstructions(filepath.Join(dir, "d"))
	require.ErrorContains(t, err, "is no file")
}
