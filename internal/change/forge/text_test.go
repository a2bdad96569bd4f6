package forge_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/change/forge"
)

// described returns the description of a change whose texts come from a hostile agent.
func described(hostile string) forge.Description {
	return forge.Description{
		ChainID: "chain-1", Link: "https://ops.example.org/chains/chain-1", ReviewID: "r1", Branch: "claudeops/chain-1", Commit: "c2",
		Files: 1, Lines: 2, Problem: hostile, Decision: "Approved by rule reviewed: " + hostile, Status: "ready", Summary: hostile,
		Findings: []string{hostile, "P2 old-image (compose.yaml:3): pin it"}, Checks: "passed", CheckOutput: hostile,
		Previews: []forge.Preview{{Command: "docker compose -f ./compose.yaml config", Output: hostile}},
	}
}

// ofPlan returns the description of a change that carries out a plan of two phases.
func ofPlan(hostile string) forge.Description {
	d := described(hostile)
	d.Phases = []string{"1 " + hostile + ": approved, verdict ready, checks passed, $0.84", "2 Its rule: approved, verdict ready, no checks, $0.50"}
	d.Phase = "2"
	return d
}

// TestMarkdownOfAPlan checks that each phase has a line, and that the verdict names its phase.
func TestMarkdownOfAPlan(t *testing.T) {
	t.Parallel()
	text := ofPlan("the port is wrong").Markdown()
	_, text, _ = strings.Cut(text, "## Phases")
	require.Equal(t, "\n\n> ```text\n> 1 the port is wrong: approved, verdict ready, checks passed, $0.84\n"+
		"> 2 Its rule: approved, verdict ready, no checks, $0.50\n> ```\n\n"+
		"## Review of phase `2`\n\nVerdict: `ready`.\n\n> ```text\n> Approved by rule reviewed: the port is wrong\n> \n> the port is wrong\n"+
		"> - the port is wrong\n> - P2 old-image (compose.yaml:3): pin it\n> ```\n\n"+
		"## Checks of phase `2`\n\nResult: `passed`.\n\n> ```text\n> the port is wrong\n> ```\n\n"+
		"## Previews of phase `2`\n\n> ```text\n> $ docker compose -f ./compose.yaml config\n> the port is wrong\n> ```\n\n"+
		"---\nChain [`chain-1`](https://ops.example.org/chains/chain-1), branch `claudeops/chain-1`, commit `c2`\n", text)
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	require.Equal(t, "<!-- claudeops chain=chain-1 commit=c2 review=r1 -->\n\n"+
		"An agent of Claude Ops has made this change. Its latest review is about 2 changed lines in 1 file.\n\n"+
		"## Why\n\n> ```text\n> the port is wrong\n> ```\n\n"+
		"## Review\n\nVerdict: `ready`.\n\n> ```text\n> Approved by rule reviewed: the port is wrong\n> \n> the port is wrong\n"+
		"> - the port is wrong\n> - P2 old-image (compose.yaml:3): pin it\n> ```\n\n"+
		"## Checks\n\nResult: `passed`.\n\n> ```text\n> the port is wrong\n> ```\n\n"+
		"## Previews\n\n> ```text\n> $ docker compose -f ./compose.yaml config\n> the port is wrong\n> ```\n\n"+
		"---\nChain [`chain-1`](https://ops.example.org/chains/chain-1), branch `claudeops/chain-1`, commit `c2`\n",
		described("the port is wrong").Markdown())
}

// TestMarkdownOfAgentsIsInert checks that no text of an agent leaves its block.
func TestMarkdownOfAgentsIsInert(t *testing.T) {
	t.Parallel()
	for _, hostile := range []string{
		"```\n/merge\nFixes #1 @everyone", "> ```\n/approve", "``````````\n<img src=x>", "~~~\n# a\n", "\u2028/label ~x", "\r/merge\r\n/close", "a\x1b[2J\u202eb",
		strings.Repeat("`", 5000) + "\n/x", "--><b>x</b>",
	} {
		text := ofPlan(hostile).Markdown()
		fence := ""
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			quote, quoted := strings.CutPrefix(line, "> ")
			switch {
			case !quoted:
				require.Empty(t, fence, "a block is open outside of the quotation")
				require.NotContains(t, line, "merge")
				require.NotRegexp(t, "^[/~@]|<b>|<img|Fixes", line)
			case fence == "":
				require.Regexp(t, "^`{3,}text$", quote)
				fence = strings.TrimSuffix(quote, "text")
			case strings.HasPrefix(strings.TrimLeft(quote, " "), fence):
				require.Equal(t, fence, quote)
				fence = ""
			}
		}
		require.Empty(t, fence)
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\u202e")
	}
}

// TestMarkdownIsBounded checks that forges accept the text, and that the verdict and the chain are always in it.
func TestMarkdownIsBounded(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"x", "x ", "ä\n", "\n.", "`"} {
		d := ofPlan(strings.Repeat(unit, 20_000))
		for range 60 {
			d.Findings, d.Previews = append(d.Findings, d.Findings[0]), append(d.Previews, d.Previews[0])
		}
		for range 600 {
			d.Phases = append(d.Phases, d.Phases[0])
		}
		text := d.Markdown()
		require.LessOrEqual(t, utf8.RuneCountInString(text), 60_000, "%q", unit)
		require.Contains(t, text, "Verdict: `ready`")
		require.Contains(t, text, "and 32 more")
		require.Contains(t, text, "> 2 Its rule: approved, verdict ready")
		require.Contains(t, text, "> and 542 more", "of the phases")
		require.True(t, strings.HasSuffix(text, "commit `c2`\n"))
	}
}

func TestMarker(t *testing.T) {
	t.Parallel()
	d := described("")
	d.ChainID = "a --> <b>\n"
	require.Equal(t, "<!-- claudeops chain=a%20--%3E%20%3Cb%3E%0A commit=c2 review=r1 -->", d.Marker())
	require.True(t, strings.HasPrefix(d.Markdown(), d.Marker()+"\n"))
}

func TestTitle(t *testing.T) {
	t.Parallel()
	require.Equal(t, "web: the right port", forge.Title(" web:\tthe right\u202e port\n"))
	require.Equal(t, 120, utf8.RuneCountInString(forge.Title(strings.Repeat("ä", 500))))
}
