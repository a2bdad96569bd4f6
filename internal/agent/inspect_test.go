package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/review"
	"github.com/claudeops/claudeops/internal/plant/config"
)

func TestPreviews(t *testing.T) {
	t.Parallel()
	content := map[string]string{
		"k8s/web.yaml": "apiVersion: v1\nkind: Service\n", "site.yml": "---\n- hosts: all\n  tasks: []\n", "values.yaml": "kind: x\n",
	}
	var files []review.File
	for _, path := range []string{"web/compose.yaml", "k8s/web.yaml", "site.yml", "values.yaml", "net/main.tf", "net/vars.tf", "notes.md", "-compose.yml"} {
		files = append(files, review.File{Path: path})
	}
	files = append(files, review.File{Path: "old/compose.yaml", Deleted: true}, review.File{Path: "link/compose.yaml", Special: true})
	var commands []string
	for _, command := range previewsOf(files, func(name string) string { return content[name] }) {
		commands = append(commands, strings.TrimSpace(strings.Join(command.words, " ")+" "+command.prepared))
	}
	require.Equal(t, []string{
		"docker compose -f ./web/compose.yaml config", "kubectl diff -f ./k8s/web.yaml", "ansible-playbook --check --diff ./site.yml",
		"terraform -chdir=net plan -input=false -no-color -lock=false net/.terraform",
	}, commands)
}

// TestPreviewThatCannotRun checks that nothing runs if the program is missing, or if the author's tier may not run it.
func TestPreviewThatCannotRun(t *testing.T) {
	t.Parallel()
	policy, err := config.Guard{}.LoadPolicy()
	require.NoError(t, err)
	with, without := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(with, "ansible-playbook"), []byte("#!/bin/sh\n"), 0o700))
	for _, c := range []struct {
		dir  string
		tier escalation.Tier
	}{{without, escalation.TierFullRepair}, {with, escalation.TierSafeRepair}} {
		i := inspection{
			Runner: &Runner{
				Options: Options{Cell: cell.Options{Driver: claude.Options{Environ: []string{"PATH=" + c.dir}}}}, policy: policy,
			},
			session: activities.AgentRun{Tier: c.tier},
		}
		_, ran := i.preview(t.Context(), previewCommand{words: []string{"ansible-playbook", "--check", "--diff", "./site.yml"}})
		require.False(t, ran)
	}
}

func TestOutputOfCommandsIsBounded(t *testing.T) {
	t.Parallel()
	var said tail
	for range 100 {
		_, err := said.Write([]byte(strings.Repeat("x", 1<<10)))
		require.NoError(t, err)
	}
	_, err := said.Write([]byte("the end"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(said.text()), maxCommandOutput+len("…\n"))
	require.True(t, strings.HasPrefix(said.text(), "…\n") && strings.HasSuffix(said.text(), "the end"))
}

func TestPreviewThatFails(t *testing.T) {
	t.Parallel()
	require.False(t, failed("kubectl", 0) || failed("kubectl", 1) || failed("docker", 0))
	require.True(t, failed("kubectl", 2) && failed("docker", 1) && failed("terraform", 1) && failed("kubectl", -1))
}

func TestTail(t *testing.T) {
	t.Parallel()
	kept := tail{most: 4}
	for range 5 {
		_, err := kept.Write([]byte("abc"))
		require.NoError(t, err)
	}
	require.Equal(t, "…\ncabc", kept.text())
	short := tail{most: 4}
	_, err := short.Write([]byte("abcd"))
	require.NoError(t, err)
	require.Equal(t, "abcd", short.text())
}
