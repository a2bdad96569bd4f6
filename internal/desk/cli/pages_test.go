package cli

import (
	"context"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/api"
	"github.com/claudeops/claudeops/internal/desk/web/pages"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plant/program"
	"github.com/claudeops/claudeops/internal/systemtest/browsertest"
)

const ownerSecret = "claudeops-token-0000000000000000000000000000000000000000000000000000000000000000"

// openPages serves the pages of an installation, and returns the link that opens them as ada.
func openPages(t *testing.T, environ []string) (root, link string) {
	t.Helper()
	does := operations.New(operations.Options{
		Environ: environ, Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Patience: operations.Patience, Masked: func() {},
	})
	hub := stream.NewHub(func() stream.Source { return does.Feed.Watch() }, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var watching sync.WaitGroup
	watching.Go(func() { hub.Run(ctx) })
	server := httptest.NewUnstartedServer(nil)
	who, err := access.New(access.Options{
		Owner: access.Owner{Name: "ada", Secret: ownerSecret}, KeyFile: filepath.Join(t.TempDir(), "key"),
		Port: server.Listener.Addr().(*net.TCPAddr).Port, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	shown, err := pages.New(does, pages.Options{Clock: time.Now, Events: "/api/v1/events", Position: hub.Position})
	require.NoError(t, err)
	server.Config.Handler, err = web.New(web.Options{
		Access: who, Parts: []web.Part{shown, api.New(does, hub, program.Version())}, Hosts: []string{"127.0.0.1"},
	})
	require.NoError(t, err)
	server.Start()
	t.Cleanup(func() {
		stop()
		server.CloseClientConnections()
		server.Close()
		watching.Wait()
		require.NoError(t, does.Close())
	})
	return server.URL, access.Link(server.URL+"/", ownerSecret)
}

// TestAChainClimbsOnThePage watches a chain climb in a browser, answers its gate there, and sees its end, without
// reloading the page.
func TestAChainClimbsOnThePage(t *testing.T) {
	t.Parallel()
	release := filepath.Join(t.TempDir(), "go")
	environ := startInstallation(t, claudesim.Play(
		claudesim.On(claudesim.Match{Model: "haiku"},
			claudesim.Bash("until test -e "+release+"; do sleep 0.1; done"),
			claudesim.Conclude(escalation.Verdict{
				Status: escalation.VerdictEscalate, Summary: "web <b>answers</b> 502", Services: []string{"web"}, RecommendedTier: 2,
			})),
		claudesim.On(claudesim.Match{Model: "sonnet"}, claudesim.Conclude(escalation.Verdict{
			Status: escalation.VerdictNeedsHuman, Summary: "the disk is broken", Services: []string{"web"},
		})),
	), "CLAUDEOPS_TIER1_TOOLS=Bash", "CLAUDEOPS_GATE_TIMEOUT=1h", "CLAUDEOPS_MAX_TIER=2")
	root, link := openPages(t, environ)
	started := starter(t, environ, "run", "--id", "climbs", "--service", "web")
	require.Equal(t, program.ExitOK, started.Code, started.Stderr)

	tab := browsertest.Open(t)
	tab.Show(link)
	tab.Show(root + "/chains/climbs")
	tab.UntilText("This page updates itself.")
	tab.UntilText("until test -e " + release) // what the agent does now
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	tab.UntilText("web <b>answers</b> 502")
	tab.UntilText("Waits for your answer")
	tab.UntilText("escalated from #1")
	tab.Do(chromedp.Click(chromedp.CSS(`[value="override"]`)), chromedp.SendKeys(chromedp.CSS("article.gate textarea"), "it is replaced"))
	tab.Leave("article.gate button")
	tab.UntilText("Answered:")
	tab.Until("document.querySelector('#state .state').textContent === 'accepted by a person'")
	tab.UntilText("ada (verified) answered override")

	tab.Show(root + "/sessions/1")
	tab.UntilText("Conversation")
	tab.Until("document.querySelector('.talk details.call code').textContent.includes('until test -e')")
	chain := starter(t, environ, "chain", "climbs").Stdout
	require.Contains(t, chain, "Total: "+browsertest.Eval[string](tab, `fetch("/chains/climbs").then(r => r.text()).then(t => t.match(/class="total">([^<]*)/)[1])`))
}
