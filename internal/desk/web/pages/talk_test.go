package pages

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/browsertest"
)

// TestTalk sends, stops and confirms with the forms of the page.
func TestTalk(t *testing.T) {
	t.Parallel()
	s := newSample()
	handler := s.serve(t, ada)
	page := get(handler, "/talk").Body.String()
	for _, part := range []string{
		"No answer: the model&#39;s provider did not answer", "jellyfin is <strong>down</strong>", "caddy answers. Its certificate</p>…", "$0.02 so far", "about $0.04", "confirmed by grace",
		"answer gate-1 of chain " + sampleChain + " with fix, with the guidance “leave the cache”", "person: `ada`", `action="/talk/ada/turns/3/stop"`,
		`action="/talk/ada/turns/2/proposals/1"`, "why did you restart it?", `name="message_id" value="`,
	} {
		require.Contains(t, page, part)
	}
	require.NotContains(t, page, `action="/talk/ada/turns/2/proposals/2"`, "it is confirmed")
	require.NotContains(t, page, "It begins with a copy")
	require.Len(t, s.listed, 1)
	part := get(handler, "/talk", "HX-Request", "true", "HX-Request-Type", "partial", "HX-Target", "div#turns").Body.String()
	require.Contains(t, part, "jellyfin is <strong>down</strong>")
	require.NotContains(t, part, "<html")
	require.Len(t, s.listed, 1, "an update of the turns lists no other conversations")
	chain := get(handler, "/chains/"+sampleChain).Body.String()
	about := "/talk/about-" + sampleChain + "?about=" + sampleChain
	require.Contains(t, chain, `href="`+about+`"`)
	require.Contains(t, get(handler, "/talk/empty?about="+sampleChain).Body.String(), "It begins with a copy of the last session of chain")

	sent := post(handler, "/talk/about-x/messages", "message_id=m-1&about=x&text=why%3F")
	require.Equal(t, http.StatusSeeOther, sent.Code)
	require.Equal(t, "/talk/about-x#turn-4", sent.Header().Get("Location"))
	require.Equal(t, http.StatusSeeOther, post(handler, "/talk/ada/turns/3/stop", "").Code)
	require.Equal(t, http.StatusSeeOther, post(handler, "/talk/ada/turns/2/proposals/1", "").Code)
	require.Equal(t, http.StatusNotFound, post(handler, "/talk/ada/turns/9/proposals/1", "").Code)
	for _, turn := range []string{"0", "x"} {
		require.Equal(t, http.StatusUnprocessableEntity, post(handler, "/talk/ada/turns/"+turn+"/stop", "").Code, "the running turn is not meant")
	}
	require.Equal(t, []string{"ada says in about-xx: why?", "ada stops turn 3 of ada", "ada (verified: true) confirms 2.1 of ada"}, s.acts)

	long := strings.Repeat("x", maxAbout+1)
	require.Equal(t, http.StatusUnprocessableEntity, get(handler, "/talk?about="+long).Code)
	require.Equal(t, http.StatusUnprocessableEntity, post(handler, "/talk/ada/messages", "message_id=m-1&text=x&about="+long).Code)
	require.Len(t, s.acts, 3)

	kept := post(handler, "/talk/ada/messages", "message_id=m-1&text="+strings.Repeat("x", escalation.MaxTalkText+1))
	require.Equal(t, http.StatusUnprocessableEntity, kept.Code)
	require.Contains(t, kept.Body.String(), "text has 16001 characters")
	require.Contains(t, kept.Body.String(), "xxx</textarea>", "what was typed is kept")
	s.err = errors.New("no worker answers")
	require.Equal(t, http.StatusServiceUnavailable, get(handler, "/talk").Code)
}

// TestTalkRoles checks what people see and may do whose role is only to talk.
func TestTalkRoles(t *testing.T) {
	t.Parallel()
	s := newSample()
	handler := s.serve(t, access.Person{Name: "grace", Roles: []access.Role{access.Talk}})
	page := get(handler, "/talk").Body.String()
	require.Contains(t, page, "<h1>Talk: grace</h1>")
	require.NotContains(t, page, `href="/incidents"`, "she may not look at other pages")
	require.Contains(t, page, "it needs the role answer")
	require.NotContains(t, page, "/proposals/1")
	for _, path := range []string{"/talk/grace/turns/2/proposals/1", "/talk/ada/messages", "/talk/ada/turns/3/stop"} {
		require.Equal(t, http.StatusForbidden, post(handler, path, "message_id=m&text=x").Code, path)
	}
	require.Equal(t, http.StatusForbidden, get(handler, "/talk/ada").Code)
	require.Equal(t, http.StatusOK, get(handler, "/talk/about-x").Code)
	require.Empty(t, s.acts)

	viewer := s.serve(t, access.Person{Name: "eve", Roles: []access.Role{access.View}})
	read := get(viewer, "/talk/ada")
	require.Equal(t, http.StatusOK, read.Code, "the role view reads conversations")
	require.Contains(t, read.Body.String(), "What was said")
	for _, form := range []string{"/messages", "/stop", "/proposals/"} {
		require.NotContains(t, read.Body.String(), form)
	}
	require.Contains(t, get(viewer, "/").Body.String(), `href="/talk"`)
	require.NotContains(t, get(viewer, "/chains/"+sampleChain).Body.String(), "Talk about this chain")
}

// TestBrowserTalk reads a reply while it is written. What somebody types meanwhile stays.
func TestBrowserTalk(t *testing.T) {
	t.Parallel()
	s := openSite(t, newSample())
	tab := s.visit(t, "ada", access.Operate)
	tab.Show(s.url + "/talk")
	tab.UntilText("This page updates itself.")
	tab.Do(chromedp.SendKeys(chromedp.CSS("textarea"), "one more"))
	browsertest.Eval[any](tab, "document.querySelector('#turn-2 details').open = true")
	s.says(operations.TalkText, func() { s.talk.Progress.Now.Text += "ends in 2 days " })
	tab.UntilText("Its certificate ends in 2 days")
	s.says(operations.TalkEnded, func() {
		s.turns[2].State, s.turns[2].Reply = escalation.TalkAnswered, "caddy answers. <script>window.owned=1</script><form action=/talk/ada/turns/2/proposals/1><button>Do it"
	})
	tab.UntilText("<script>window.owned=1</script><form action=/talk/ada/turns/2/proposals/1><button>Do it")
	require.False(t, browsertest.Eval[bool](tab, "'owned' in window"))
	require.Equal(t, 1, browsertest.Eval[int](tab, "document.querySelectorAll('.proposal button').length"))
	require.Equal(t, "one more", browsertest.Get(tab, chromedp.Value(chromedp.CSS("textarea"))))
	require.True(t, browsertest.Eval[bool](tab, "document.querySelector('#turn-2 details').open"))
	tab.Leave("form.say button")
	tab.Until("location.hash === '#turn-4'")
	tab.Leave(".proposal button")
	require.Contains(t, browsertest.Get(tab, chromedp.Text(chromedp.CSS("p[role=status]"))), "Done in your name: started chain chain-2")
	require.Equal(t, []string{"ada says in ada: one more", "ada (verified: true) confirms 2.1 of ada"}, s.acts)
}
