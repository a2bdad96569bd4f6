package activities

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/prompts"
)

func TestInstructions(t *testing.T) {
	t.Parallel()
	catalog, err := escalation.NewCatalog([]escalation.Service{
		{Name: "web", Aliases: []string{"shop"}, RunbookFile: "/web.md", LookFile: "/web-look.md"},
		{Name: "db", RunbookFile: "/db.md"},
		{Name: "mail", RunbookFile: "/lost.md"},
		{Name: "tv"},
	})
	require.NoError(t, err)
	files := map[string]string{
		"/web.md":      "# Web\n\nFirst look.\n\n```sh\n# no heading\n```\n\n## Restart\n\nOnce.\n",
		"/web-look.md": "Ask /health.\n",
		"/db.md":       "Never restart it.\n",
	}
	tiers := &Tiers{Catalog: catalog, ReadFile: func(path string) (string, error) {
		if text, there := files[path]; there {
			return text, nil
		}
		return "", errors.New("no such file")
	}}
	const headingsOnly = "headings of the runbook, which agents that repair get"
	repair := RunTierInput{Tier: escalation.TierSafeRepair, Affected: []string{"shop"}}
	runbook := prompts.Instruction{Service: "web", Kind: "runbook", Text: strings.TrimSpace(files["/web.md"])}
	require.Equal(t, []prompts.Instruction{runbook}, tiers.instructions(repair))

	look := []prompts.Instruction{
		{Service: "web", Kind: "how to look", Text: "Ask /health."}, {Service: "web", Kind: headingsOnly, Text: "# Web\n## Restart"},
	}
	require.Equal(t, look, tiers.instructions(RunTierInput{Tier: escalation.TierObserve, Services: []string{"web", "tv"}}))
	recheck := repair
	recheck.Recheck = true
	require.Equal(t, look, tiers.instructions(recheck))
	dry := repair
	dry.Policy.DryRun = true
	require.Equal(t, look, tiers.instructions(dry))

	all := tiers.instructions(RunTierInput{Tier: escalation.TierFullRepair})
	require.Len(t, all, 3)
	require.Contains(t, all, prompts.Instruction{Service: "db", Kind: "runbook", Text: "Never restart it."})
	require.Contains(t, all, prompts.Instruction{
		Service: "mail", Kind: "runbook", Text: "(This file cannot be read now: no such file. Say so in your verdict.)",
	})

	files["/web.md"], files["/db.md"], files["/lost.md"] = strings.Repeat("a", 8_000), strings.Repeat("b", 16_001), "c"
	require.Contains(t, tiers.instructions(RunTierInput{Tier: escalation.TierFullRepair}), prompts.Instruction{Text: "(1 more files are left out.)"})
	require.Nil(t, (&Tiers{}).instructions(repair))
}
