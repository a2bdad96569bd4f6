package pages

import (
	"context"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/browsertest"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Run(m)) }

const eventsPath = "/api/v1/events"

// site is the real server with the pages of a sample.
type site struct {
	*sample

	url    string
	tokens *access.TokenFile
	// away is added to the time by which logins expire.
	away atomic.Int64
	// changes are the changes that nobody has heard of yet.
	changes chan operations.Change
	// said has an element for each change of a conversation.
	said chan operations.TalkNews
}

// partFunc registers routes.
type partFunc func(*access.Router)

func (register partFunc) Register(router *access.Router) { register(router) }

// Next implements stream.Source.
func (s *site) Next(context.Context, operations.Interest) ([]operations.Change, error) {
	var news []operations.Change
	for len(s.changes) > 0 {
		news = append(news, <-s.changes)
	}
	return news, nil
}

// happens changes the sample, and tells all viewers of a change.
func (s *site) happens(kind operations.ChangeKind, change func()) {
	s.mutex.Lock()
	change()
	s.mutex.Unlock()
	s.changes <- operations.Change{Kind: kind, ChainID: sampleChain, At: time.Now()}
}

// says changes the conversation of the sample, and tells its viewer.
func (s *site) says(kind operations.TalkEventKind, change func()) {
	s.mutex.Lock()
	change()
	s.mutex.Unlock()
	s.said <- operations.TalkNews{Number: 3, TalkEvent: operations.TalkEvent{Kind: kind}}
}

// watchTalk implements stream.WatchTalk.
func (s *site) watchTalk(ctx context.Context, _ string, see func(operations.TalkNews) error) error {
	for {
		select {
		case news := <-s.said:
			if err := see(news); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openSite starts the server.
func openSite(t *testing.T, s *sample) *site {
	t.Helper()
	one := &site{sample: s, changes: make(chan operations.Change, 100), said: make(chan operations.TalkNews, 10)}
	dir := t.TempDir()
	one.tokens = access.OpenTokens(filepath.Join(dir, "tokens.json"))
	server := httptest.NewUnstartedServer(nil)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	who, err := access.New(access.Options{
		Tokens: one.tokens, KeyFile: filepath.Join(dir, "key"), Port: port, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.Now().Add(time.Duration(one.away.Load())) },
	})
	require.NoError(t, err)
	hub := stream.NewHub(func() stream.Source { return one }, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { hub.Run(ctx) })
	made, err := newPages(s.backend(), Options{Clock: chaintest.Clock, Events: eventsPath, Position: hub.Position})
	require.NoError(t, err)
	events := partFunc(func(router *access.Router) {
		router.Handle(access.View, "GET "+eventsPath, hub.Handler())
		router.Handle(access.Talk, "GET /api/v1/conversations/{name}/events", stream.NewTalks(one.watchTalk, nil).Handler())
	})
	whole, err := web.New(web.Options{Access: who, Parts: []web.Part{made, events}, Hosts: []string{"127.0.0.1"}})
	require.NoError(t, err)
	server.Config.Handler = whole
	server.Start()
	t.Cleanup(func() { stop(); server.CloseClientConnections(); server.Close(); running.Wait() })
	one.url = server.URL
	return one
}

// visit opens a tab, and logs in as a person with a role.
func (s *site) visit(t *testing.T, name string, role access.Role) *browsertest.Tab {
	t.Helper()
	secret, err := s.tokens.Create(access.Token{Name: name, Roles: []access.Role{role}, CreatedAt: time.Now()})
	require.NoError(t, err)
	tab := browsertest.Open(t)
	tab.Show(s.url + "/login")
	tab.Do(chromedp.SendKeys(chromedp.CSS("#token"), secret))
	tab.Leave("button")
	return tab
}

// axe finds barriers for people who cannot see or use a mouse. Only tests use it.
const axe = "../../../../tools/web/node_modules/axe-core/axe.min.js"

// TestBrowserBarriers looks for barriers on all pages, and for pages that are too wide for a phone.
func TestBrowserBarriers(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(axe)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("axe-core is not installed: make web-assets installs it")
	}
	require.NoError(t, err)
	s := openSite(t, newSample())
	tab := s.visit(t, "ada", access.Operate)
	for name, path := range samplePaths() {
		looks := []string{"light"}
		if slices.Contains([]string{"now", "chain", "plan", "session", "policy", "talk"}, name) {
			looks = append(looks, "dark")
		}
		for _, look := range looks {
			tab.Look(look, 360)
			tab.Show(s.url + path)
			require.LessOrEqual(t, browsertest.Eval[int](tab, "document.documentElement.scrollWidth"), 360, path)
			browsertest.Eval[any](tab, "document.querySelectorAll('details').forEach(one => one.open = true)")
			require.LessOrEqual(t, browsertest.Eval[int](tab, "document.documentElement.scrollWidth"), 360, "%s, unfolded", path)
			found := browsertest.Eval[[]string](tab, string(script)+`;axe.run({resultTypes: ["violations"]}).then(found => found.violations.flatMap(
				rule => rule.nodes.map(node => rule.id + ": " + node.html.slice(0, 200) + " " + (node.any[0]?.message ?? ""))))`)
			require.Empty(t, found, "%s, %s", path, look)
		}
	}
}

// TestBrowserHostile shows what agents wrote to harm the reader, and checks that it is only text.
func TestBrowserHostile(t *testing.T) {
	t.Parallel()
	bad := poisoned(hostile + strings.Repeat("W", 400))
	bad.snapshot.Live, bad.snapshot.Chain.Outcome = true, ""
	bad.session.Conversation.Messages[2].Results[0].Text = strings.Repeat("x", 5<<20)
	s := openSite(t, bad)
	tab := s.visit(t, "ada", access.Operate)
	tab.Look("light", 360)
	for _, path := range samplePaths() {
		tab.Show(s.url + path)
		require.False(t, browsertest.Eval[bool](tab, "'owned' in window"), path)
		require.Equal(t, 1, browsertest.Eval[int](tab, "document.scripts.length"), path)
		require.Equal(t, 0, browsertest.Eval[int](tab, "document.querySelectorAll('main img, main style, [onclick], [onerror], [style]').length"), path)
		require.LessOrEqual(t, browsertest.Eval[int](tab, "document.documentElement.scrollWidth"), 360, path)
	}
}

// TestBrowserKeyboard answers a gate with the keyboard alone.
func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	s := openSite(t, newSample())
	tab := s.visit(t, "ada", access.Answer)
	tab.Show(s.url + "/")
	press := func(keys string) { tab.Do(chromedp.KeyEvent(keys)) }
	focus := func() string {
		return browsertest.Eval[string](tab, "(e => e.name || e.textContent.trim())(document.activeElement)")
	}
	press(kb.Tab)
	require.Equal(t, "Skip to the content", focus())
	require.True(t, browsertest.Eval[bool](tab, "document.activeElement.getBoundingClientRect().left >= 0"), "it is visible")
	press(kb.Enter)
	tab.Until("document.activeElement.id === 'main'")
	for focus() != "action" {
		press(kb.Tab)
		require.NotEqual(t, "3px", browsertest.Eval[string](tab, "document.activeElement === document.body ? '3px' : ''"), "no answer can be reached")
		require.Equal(t, "3px", browsertest.Eval[string](tab, "getComputedStyle(document.activeElement).outlineWidth"), "the focus is visible")
	}
	press(kb.ArrowDown) // the second answer: fix
	press(kb.Tab)
	require.Equal(t, "guidance", focus())
	press("look at the disk")
	press(kb.Tab)
	require.Equal(t, "Answer", focus())
	press(kb.Enter)
	tab.UntilText("Answered: Tier 2 runs again in a new session.")
	require.Equal(t, []string{"ada (verified: true) answers gate-1 of " + sampleChain + " with fix: look at the disk"}, s.acts)
}

// TestBrowserWithoutScripts reads and acts without JavaScript.
func TestBrowserWithoutScripts(t *testing.T) {
	t.Parallel()
	s := openSite(t, newSample())
	tab := s.visit(t, "ada", access.Operate)
	tab.WithoutScripts()
	tab.Show(s.url + "/")
	require.Contains(t, browsertest.Get(tab, chromedp.Text(chromedp.CSS("footer"))), "Reload the page")
	tab.Do(chromedp.Click(chromedp.CSS(`[value="gate-1 `+sampleChain+`"]`)), chromedp.Click(chromedp.CSS(`[value="override"]`)))
	tab.Leave("form.answer button")
	require.Contains(t, browsertest.Get(tab, chromedp.Text(chromedp.CSS("p[role=status]"))), "Answered:")
	tab.Show(s.url + "/chains/" + sampleChain)
	tab.Do(chromedp.Click(chromedp.CSS("details.act:last-of-type summary")))
	tab.Leave("details.act:last-of-type button")
	require.Contains(t, browsertest.Get(tab, chromedp.Text(chromedp.CSS("p[role=status]"))), "asked to end")
	require.Len(t, s.acts, 2)
}

// TestBrowserLive checks that a page follows what happens, and that nothing is lost that a person types or has
// unfolded.
func TestBrowserLive(t *testing.T) {
	t.Parallel()
	s := openSite(t, newSample())
	tab := s.visit(t, "ada", access.Operate)
	tab.Show(s.url + "/")
	tab.UntilText("This page updates itself.")
	tab.Do(chromedp.SendKeys(chromedp.CSS("textarea"), "look at the disk"), chromedp.Click(chromedp.CSS(`#attention [value="fix"]`)))
	browsertest.Eval[any](tab, "document.querySelectorAll('details').forEach(one => one.open = true)")
	s.happens(operations.ChangeProgress, func() { s.now.Work.Chains[0].Doing = "Bash  systemctl status caddy" })
	tab.UntilText("systemctl status caddy")
	s.happens(operations.ChangeIncident, func() { s.now.Incidents.Incidents, s.now.Incidents.Open = s.now.Incidents.Incidents[:1], 1 })
	tab.UntilText("1 incident is open")
	require.Equal(t, "look at the disk", browsertest.Get(tab, chromedp.Value(chromedp.CSS("textarea"))))
	require.True(t, browsertest.Eval[bool](tab, `document.querySelector('#attention [value="fix"]').checked`))
	require.True(t, browsertest.Eval[bool](tab, "[...document.querySelectorAll('details')].every(one => one.open)"))
	s.happens(operations.ChangeGate, func() {
		s.now.Gates.Gates, s.now.Gates.Waiting = s.now.Gates.Gates[1:], 1
		s.snapshot.Chain.Gates[0].Answer = &escalation.GateClosing{Action: escalation.GateRecheck, Actor: "grace", At: chaintest.Noon}
	})
	tab.Until("!document.body.innerText.includes('jellyfin: what should happen?')")
	tab.UntilText("jellyfin: the gate is closed, and your answer was not sent. gate-1: grace answered look again at Mar 1, 12:00 UTC.")
	require.Equal(t, "look at the disk", browsertest.Get(tab, chromedp.Text(chromedp.CSS(".kept"))))
	tab.UntilText("caddy: what should happen?")
}

// TestBrowserTwoPeople lets two people answer one gate. The second one is told who was first, and keeps what they
// wrote.
func TestBrowserTwoPeople(t *testing.T) {
	t.Parallel()
	s := openSite(t, newSample())
	ada, grace := s.visit(t, "ada", access.Answer), s.visit(t, "grace", access.Answer)
	for _, tab := range []*browsertest.Tab{ada, grace} {
		tab.Show(s.url + "/chains/" + sampleChain)
		tab.Do(chromedp.Click(chromedp.CSS(`[value="fix"]`)), chromedp.SendKeys(chromedp.CSS("textarea"), "look at the disk"))
	}
	ada.Leave("form.answer button")
	ada.UntilText("Answered:")
	grace.Leave("form.answer button")
	grace.UntilText("gate-1 is closed: ada answered fix")
	require.Len(t, s.acts, 1)
}

// TestBrowserEightTabs opens more tabs than a browser has connections to a server.
func TestBrowserEightTabs(t *testing.T) {
	t.Parallel()
	s := openSite(t, newSample())
	first := s.visit(t, "ada", access.View)
	tabs := []*browsertest.Tab{first}
	for len(tabs) < 8 {
		tabs = append(tabs, first.Another())
	}
	for _, tab := range tabs {
		tab.ToFront()
		tab.Show(s.url + "/")
		tab.UntilText("This page updates itself.")
	}
	last := tabs[len(tabs)-1]
	s.happens(operations.ChangeProgress, func() { s.now.Work.Chains[0].Doing = "Bash  one more" })
	last.UntilText("one more")
	hidden := 0
	for _, tab := range tabs {
		if browsertest.Eval[bool](tab, "document.hidden") {
			hidden++
		}
	}
	require.Equal(t, 7, hidden)
}

// TestBrowserExpiredLogin ends a login while a page is open. What somebody has typed is kept.
func TestBrowserExpiredLogin(t *testing.T) {
	t.Parallel()
	s := openSite(t, newSample())
	tab := s.visit(t, "ada", access.Answer)
	tab.Show(s.url + "/")
	tab.UntilText("This page updates itself.")
	tab.Do(chromedp.SendKeys(chromedp.CSS("textarea"), "look at the disk"))
	s.away.Store(int64(90 * 24 * time.Hour))
	s.happens(operations.ChangeGate, func() {})
	tab.UntilText("Your login has expired.")
	require.Equal(t, "look at the disk", browsertest.Get(tab, chromedp.Value(chromedp.CSS("textarea"))))
	browsertest.Eval[any](tab, "document.querySelector('textarea').value = ''")
	s.happens(operations.ChangeGate, func() {})
	tab.Until("location.pathname === '/login'")
	require.Equal(t, "/", browsertest.Get(tab, chromedp.Value(chromedp.CSS("[name=next]"))))
	require.Empty(t, s.acts)
}
