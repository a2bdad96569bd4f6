package systemtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

var updatePage = flag.Bool("update-page", false, "write the table of docs/security.md")

// The lines around the table in docs/security.md.
const (
	tableBegin = "<!-- written by TestSecurityPage -args -update-page -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// TestSecurityPage checks that the table in docs/security.md says what TestAgentFromHell finds.
func TestSecurityPage(t *testing.T) {
	t.Parallel()
	page := filepath.Join(simtest.ModuleRoot(t), "docs", "security.md")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), tableBegin)
	require.True(t, found, "the line before the table is missing")
	_, after, found := strings.Cut(rest, tableEnd)
	require.True(t, found, "the line after the table is missing")
	want := before + tableBegin + reachTable() + tableEnd + after
	if *updatePage {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600)) // it exists, and keeps its mode
	}
	require.Equal(t, want, string(text), "write it again: go test ./internal/systemtest -run TestSecurityPage -args -update-page")
}

// reachTable returns the table: for each target and mode, the attacks that succeed.
func reachTable() string {
	modes := []hellMode{agentsUser, ordinaryUser, rootAlone}
	var table strings.Builder
	table.WriteString("\n| what an agent of Tiers 1 and 2 tries to reach | attacks | full | kernel only, as an ordinary user | kernel only, as root |\n" +
		"|---|---|---|---|---|\n")
	var targets []target
	for _, each := range attacks() {
		if !slices.Contains(targets, each.at) {
			targets = append(targets, each.at)
		}
	}
	for _, on := range targets {
		tried, cells := 0, map[hellMode][]string{}
		for _, each := range attacks() {
			if each.at != on {
				continue
			}
			tried++
			for _, mode := range modes {
				if _, open := each.open[mode]; open {
					cells[mode] = append(cells[mode], each.name)
				}
			}
		}
		fmt.Fprintf(&table, "| %s | %d |", on, tried)
		for _, mode := range modes {
			cell := "denied"
			if len(cells[mode]) > 0 {
				cell = "**can** " + strings.Join(cells[mode], "; ")
			}
			fmt.Fprintf(&table, " %s |", cell)
		}
		table.WriteString("\n")
	}
	return table.String() + "\n"
}
