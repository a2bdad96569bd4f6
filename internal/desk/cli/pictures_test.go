package cli

import (
	"encoding/xml"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/cli/screenshot"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/clitest"
	"github.com/claudeops/claudeops/internal/systemtest/servicetest"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

var drawPictures = flag.Bool("pictures", false, "draw the pictures of the documentation anew, from real runs")

const (
	// pictureRows is more than most pictures have. Empty rows at the end are cut.
	pictureRows = 60
	// demoRows are the rows from the empty line before the demo's chain to the cursor. The rows before them scroll
	// away.
	demoRows = 13
	// maxPicture limits the size of a picture in bytes.
	maxPicture = 60_000
)

// pictures are the pictures in docs/pictures, with the page that shows each.
var pictures = map[string]string{"demo": "README.md", "incident": "README.md", "gate": "docs/gates.md", "incidents": "docs/incidents.md"}

func picturePath(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(simtest.ModuleRoot(t), "docs", "pictures", name+".svg")
}

// TestPictures checks that the pictures of the documentation are small images that need no other file, and that a page
// shows each.
func TestPictures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(picturePath(t, "*"))
	require.NoError(t, err)
	require.Len(t, files, len(pictures))
	for name, page := range pictures {
		svg, err := os.ReadFile(picturePath(t, name))
		require.NoError(t, err)
		require.Less(t, len(svg), maxPicture, name)
		var drawn struct {
			XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
			Title   string   `xml:"title"`
			Desc    string   `xml:"desc"`
			Texts   []string `xml:"g>text"`
		}
		require.NoError(t, xml.Unmarshal(svg, &drawn), name)
		require.NotEmpty(t, drawn.Title, name)
		require.NotEmpty(t, drawn.Desc, name)
		require.Greater(t, len(drawn.Texts), 10, name)
		require.NotRegexp(t, `<script|<image|<foreignObject|href=|@import|url\(`, string(svg), name)
		shown, err := os.ReadFile(filepath.Join(simtest.ModuleRoot(t), page))
		require.NoError(t, err)
		require.Regexp(t, `!\[[^]]{20,}\]\([a-z/]*pictures/`+name+`\.svg\)`, string(shown), "%s does not show it with a text for people who cannot see it", page)
	}
}

// TestDrawPictures draws the pictures of the documentation anew, if -pictures is set.
func TestDrawPictures(t *testing.T) {
	t.Parallel()
	if !*drawPictures {
		t.Skip("draws only with -pictures; run make pictures")
	}
	t.Run("demo", func(t *testing.T) {
		t.Parallel()
		shown := photograph(t, os.Environ(), 96, demoRows, "demo")
		shown.ended(t)
		shown.draw(t, "demo", screenshot.Caption{
			Title: "The end of the demo",
			Description: "A chain of three sessions. Haiku and sonnet escalate, opus resolves the fault. " +
				"Each goes on with the conversation of the one before it, and has its cost and its time.",
		})
	})
	t.Run("real CLI", func(t *testing.T) {
		t.Parallel()
		drawIncident(t)
	})
}

// photo is a run of the program on a terminal.
type photo struct {
	*clitest.Screen
	args []string
}

// photograph runs the program as a person would, with the real clock.
func photograph(t *testing.T, environ []string, columns, rows uint16, args ...string) photo {
	t.Helper()
	return photo{clitest.Starter{Execute: execute}.OnScreen(t, environ, columns, rows, args...), args}
}

func (p photo) ended(t *testing.T) {
	t.Helper()
	require.Equal(t, program.ExitOK, p.Ends(), p.Text())
	p.Settle()
}

// draw writes the picture. The screen must not change any more.
func (p photo) draw(t *testing.T, name string, caption screenshot.Caption) {
	t.Helper()
	t.Log("\n" + strings.TrimRight(p.Text(), "\n"))
	p.Emulator(func(emulator *vt.Emulator) {
		if emulator.ScrollbackLen() == 0 {
			caption.Command = "claudeops " + strings.Join(p.args, " ")
		}
		require.NoError(t, os.WriteFile(picturePath(t, name), screenshot.SVG(emulator, caption), 0o644))
	})
}

// drawIncident lets the real CLI repair a service that is really down, and then meet a fault that it must not repair.
// Only the model is scripted: its words, and the tokens that it counts.
func drawIncident(t *testing.T) {
	versions := simtest.NewestVersions(t)
	cli := simtest.RealCLI(t, versions[len(versions)-1])
	work := t.TempDir()
	broken := servicetest.Start(t, work)
	require.Equal(t, http.StatusBadGateway, broken.Status(t))
	api := simtest.StartAPI(t, incidentScript(broken.URL))
	environ := startInstalled(t, cli, "CLAUDEOPS_WORK_DIR="+work, "CLAUDEOPS_SANDBOX=auto", "CLAUDEOPS_MAX_TIER=2", "CLAUDEOPS_GATE_TIMEOUT=72h",
		"CLAUDEOPS_POLICY_FILE="+restartPolicy(t, broken), "PATH="+broken.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"ANTHROPIC_BASE_URL="+api.URL(), "ANTHROPIC_API_KEY=not-a-key")

	chain := startChain(t, environ, "jellyfin")
	awaitChain(t, environ, chain, "Outcome: resolved")
	require.Equal(t, http.StatusOK, broken.Status(t), "the service really runs again")
	shown := photograph(t, environ, 128, pictureRows, "chain", chain, "--calls")
	shown.ended(t)
	shown.draw(t, "incident", screenshot.Caption{
		Title: "A repair by the real claude CLI",
		Description: "Tier 1 sees that jellyfin answers 502, and is denied a restart. Tier 2 goes on with the conversation, " +
			"restarts jellyfin, and sees that it answers 200.",
	})

	waiting := startChain(t, environ, "library")
	awaitChain(t, environ, waiting, "Gate gate-1")
	asked := photograph(t, environ, 96, pictureRows, "gate", waiting)
	asked.Sees("Your answer")
	asked.Settle()
	asked.draw(t, "gate", screenshot.Caption{
		Title:       "A gate",
		Description: "A chain waits for a person. The gate says why, what was tried and what it has cost, and offers four answers.",
	})
	asked.Types("\x03")
	asked.Ends()

	listed := photograph(t, environ, 80, pictureRows, "incidents", "--all")
	listed.ended(t)
	listed.draw(t, "incidents", screenshot.Caption{
		Title:       "The incidents",
		Description: "One incident was repaired. Another waits for a person at a gate.",
	})
}

var startedChain = regexp.MustCompile(`Started chain (chain-\S+)\. `)

// startChain starts a chain for a service and returns its ID.
func startChain(t *testing.T, environ []string, service string) string {
	t.Helper()
	started := starter(t, environ, "run", "--service", service)
	require.Equal(t, program.ExitOK, started.Code, started.Stderr)
	id := startedChain.FindStringSubmatch(started.Stdout)
	require.NotNil(t, id, started.Stdout)
	return id[1]
}

// awaitChain waits until what claudeops prints about the chain contains text.
func awaitChain(t *testing.T, environ []string, chainID, text string) {
	t.Helper()
	var tree string
	require.Eventually(t, func() bool {
		tree = starter(t, environ, "chain", chainID).Stdout
		return strings.Contains(tree, text)
	}, clitest.Timeout, 200*time.Millisecond, "%s", &tree)
}

// restartPolicy returns a policy file that lets agents of Tier 2 restart the service, in addition to the built-in
// policy.
func restartPolicy(t *testing.T, broken servicetest.Service) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nextends: default\ndirectories: ["+broken.Bin+"]\n"+
		"programs:\n  restart-service: {tier: 2, starts: [sleep], args: SERVICE, action: restart}\n"+
		"tiers:\n  2: {signals: true} # restart-service sends one\n"), 0o600))
	return file
}

// incidentScript returns the replies of the model, with as many tokens as such replies have.
func incidentScript(url string) claudesim.Scenario {
	look := "curl -sI " + url
	reply := func(tokens int, r claudesim.Reply) claudesim.Reply {
		return r.Using(claudesim.Usage{Input: 900, Output: tokens, CacheRead: 14_000, CacheCreation: 1_200})
	}
	concludes := func(verdict escalation.Verdict, service string) claudesim.Reply {
		verdict.Services = []string{service}
		return reply(400, claudesim.Conclude(verdict))
	}
	return claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku", Prompt: "library"}, reply(120, claudesim.Bash(look)),
			concludes(escalation.Verdict{
				Status: escalation.VerdictEscalate, RecommendedTier: escalation.TierSafeRepair,
				Summary: "jellyfin answers, but its library cannot be read",
			}, "library")),
		claudesim.On(claudesim.Match{Model: "sonnet", Prompt: "library"}, reply(150, claudesim.Bash("df -h /var/lib")),
			concludes(escalation.Verdict{
				Status:   escalation.VerdictNeedsHuman,
				Summary:  "the library's database is damaged. May I restore the backup of last night? What was watched since then would be forgotten",
				Findings: "library.db: file is not a database", Remediation: "looked at the disk: there is room",
			}, "library")),
		claudesim.On(claudesim.Match{Model: "haiku"}, reply(120, claudesim.Bash(look)), reply(150, claudesim.Bash("restart-service jellyfin")),
			concludes(escalation.Verdict{
				Status: escalation.VerdictEscalate, RecommendedTier: escalation.TierSafeRepair, Summary: "jellyfin answers 502; a restart needs Tier 2",
			}, "jellyfin")),
		claudesim.On(claudesim.Match{Model: "sonnet"}, reply(150, claudesim.Bash("restart-service jellyfin")), reply(120, claudesim.Bash(look)),
			concludes(escalation.Verdict{Status: escalation.VerdictResolved, Summary: "restarted jellyfin; it answers 200"}, "jellyfin")),
	)
}
