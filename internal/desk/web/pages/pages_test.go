package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
	"github.com/claudeops/claudeops/internal/systemtest/chaintest"
)

func TestEveryPage(t *testing.T) {
	t.Parallel()
	handler := newSample().serve(t, ada)
	for name, path := range samplePaths() {
		want := http.StatusOK
		if name == "unknown" {
			want = http.StatusNotFound
		}
		got := get(handler, path)
		require.Equal(t, want, got.Code, "%s: %s", path, got.Body)
		require.Equal(t, "no-store", got.Header().Get("Cache-Control"), path)
		checkMarkup(t, got.Body.String())
	}
}

// TestEmptyInstallation checks that pages without any data say so.
func TestEmptyInstallation(t *testing.T) {
	t.Parallel()
	empty := &sample{incidents: []operations.Incident{{}}}
	empty.snapshot.Chain.ID = "c"
	empty.session.Session.ChainID = "c"
	empty.service.Name = "s"
	empty.schedule.ID = "s"
	for name, path := range samplePaths() {
		got := get(empty.serve(t, ada), path)
		require.Less(t, got.Code, 500, "%s: %s", path, got.Body)
		if name == "now" {
			require.Contains(t, got.Body.String(), "Nothing is wrong that this installation knows of.")
		}
	}
}

// guess makes every cost in a value an estimate. A type with a cost that cannot say so fails the test.
func guess(t *testing.T, value reflect.Value) {
	t.Helper()
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			guess(t, value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			guess(t, value.Index(i))
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			changed := reflect.New(value.Type().Elem()).Elem()
			changed.Set(value.MapIndex(key))
			guess(t, changed)
			value.SetMapIndex(key, changed)
		}
	case reflect.Struct:
		for _, field := range value.Fields() {
			if field.CanSet() {
				guess(t, field)
			}
		}
		for cost, mark := range map[string]string{"CostUSD": "CostEstimated", "ReviewCostUSD": "ReviewCostEstimated", "SpentUSD": "Estimated", "USD": "EstimatedUSD"} {
			own, has := value.Type().FieldByName(cost)
			if !has || len(own.Index) > 1 || value.Type() == reflect.TypeFor[escalation.TalkTurn]() {
				continue
			}
			marked := value.FieldByName(mark)
			switch {
			case isLive(value.Type()): // it is an estimate always
			case hasMethod(value.Type(), mark): // its sessions say it
			case marked.IsValid() && marked.Kind() == reflect.Bool:
				marked.SetBool(true)
			case marked.IsValid():
				marked.SetFloat(value.FieldByName(cost).Float())
			default:
				require.Fail(t, "a cost cannot say that it is a guess", "%s.%s", value.Type(), cost)
			}
		}
	default:
	}
}

func hasMethod(of reflect.Type, name string) bool {
	_, has := reflect.PointerTo(of).MethodByName(name)
	return has
}

// isLive reports whether the cost of a type is that of a running session, or belongs to a session that says whether it
// is a guess.
func isLive(of reflect.Type) bool {
	return slices.Contains([]reflect.Type{
		reflect.TypeFor[activities.AgentProgress](), reflect.TypeFor[operations.WorkingSession](), reflect.TypeFor[operations.ModelUse](),
		reflect.TypeFor[operations.PastAttempt](), reflect.TypeFor[operations.ConversationRow](),
	}, of)
}

// TestServicesLead checks that the page of the services begins with what is wrong.
func TestServicesLead(t *testing.T) {
	t.Parallel()
	page := get(newSample().serve(t, ada), "/services").Body.String()
	require.Contains(t, page, "Down: jellyfin. Not well: caddy. 1 service up. <span class=\"faint\">1 not looked at.</span>")
	require.Contains(t, page, "27 of 30 well")
}

// TestGuessesAreSaid shows every page of an installation in which all costs are guesses. Each amount is "about" that,
// but for budgets and what they reserve.
func TestGuessesAreSaid(t *testing.T) {
	t.Parallel()
	made := newSample()
	for _, shown := range []any{&made.now, &made.list, &made.snapshot, &made.plan, &made.session, &made.incidents, &made.service, &made.costs, &made.schedules, &made.schedule} {
		guess(t, reflect.ValueOf(shown))
	}
	handler := made.serve(t, ada)
	amount, total := regexp.MustCompile(`(?s).{60}\$\d+\.\d+`), 0
	for name, path := range samplePaths() {
		text := html.UnescapeString(get(handler, path).Body.String())
		for _, found := range amount.FindAllString(text, -1) {
			total++
			before := found[:strings.LastIndex(found, "$")]
			limit := slices.ContainsFunc([]string{
				"Reserved by those that run</dt><dd>", "Budget</dt><dd>", "Left for new sessions</dt><dd>", " of ", "Of it estimated</dt><dd>",
				"Unknown, in addition at most</dt><dd>", "at most ",
				"), ", " for ", // what the sample's gates and events say is text
			}, func(what string) bool { return strings.HasSuffix(before, what) })
			if !limit && !strings.HasSuffix(found, "$0.00") && name != "talk" && !strings.Contains(before, "doing") {
				require.True(t, strings.HasSuffix(before, "about "), "%s: %q", path, found)
			}
		}
	}
	require.Greater(t, total, 20)
}

// hostile is what an agent can write to harm the person who reads it.
const hostile = `"'></title></textarea></style></script><script>window.owned=1</script><img src=x onerror=window.owned=1>` +
	`<style>body{display:none}</style><b style="color:red" onclick="window.owned=1">` + "\x1b]0;owned\a\x1b[2J\u202eevil\u2066\u200b\x00\r\njavascript:window.owned=1"

// poison appends a text to every string in a value.
func poison(value reflect.Value, text string) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			poison(value.Elem(), text)
		}
	case reflect.Struct:
		for _, field := range value.Fields() {
			if field.CanSet() {
				poison(field, text)
			}
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return // JSON
		}
		for i := range value.Len() {
			poison(value.Index(i), text)
		}
	case reflect.String:
		value.SetString(value.String() + text)
	}
}

// poisoned returns a sample in which an agent has written text wherever a text is.
func poisoned(text string) *sample {
	s := newSample()
	for _, part := range []any{
		&s.now, &s.list, &s.snapshot, &s.plan, &s.session, &s.incidents, &s.memories, &s.services, &s.service, &s.schedules, &s.schedule, &s.costs, &s.policy, &s.decision,
		&s.turns, &s.talk, &s.rows,
	} {
		poison(reflect.ValueOf(part).Elem(), text)
	}
	return s
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()
	evil := access.Person{Name: "ada" + hostile, Roles: ada.Roles}
	handler := poisoned(hostile).serve(t, evil)
	for name, path := range samplePaths() {
		path, _, _ = strings.Cut(path, "?")
		got := get(handler, path+"?"+url.Values{"service": {hostile}, "call": {hostile}, "cost": {hostile}}.Encode())
		page := got.Body.String()
		require.Less(t, got.Code, 500, page)
		checkMarkup(t, page)
		require.Equal(t, name != "unknown", strings.Contains(page, "evil"), path)
	}
	failing := newSample()
	failing.err = fmt.Errorf("no worker: %s", hostile)
	for _, path := range samplePaths() {
		checkMarkup(t, get(failing.serve(t, ada), path).Body.String())
	}
}

// TestHugeTexts checks that a line of megabytes neither makes a huge page nor is left out in silence.
func TestHugeTexts(t *testing.T) {
	t.Parallel()
	s := newSample()
	huge := strings.Repeat("x", 5<<20)
	s.session.Conversation.Messages[2].Results[0].Text = huge
	s.session.Conversation.Messages[0].Text = huge
	s.session.Session.Verdict.Summary, s.snapshot.Chain.Reason, s.snapshot.Chain.Events[0].Message = huge, huge, huge
	s.incidents[0].Summary, s.now.Work.Chains[0].Doing = huge, huge
	for _, path := range samplePaths() {
		got := get(s.serve(t, ada), path)
		require.Less(t, got.Code, 500, path)
		require.Less(t, got.Body.Len(), 200_000, path)
	}
	require.Contains(t, get(s.serve(t, ada), "/sessions/42").Body.String(), "x…")
}

var (
	machineID = regexp.MustCompile(`^[A-Za-z][-A-Za-z0-9_:.]*$`)
	ownFile   = regexp.MustCompile(`^/assets/[0-9a-f]{16}/[-a-z.]+$`)
)

// checkMarkup checks that a page has no script and no style but its own files, that no link leaves http, that IDs are
// unique, and that no character is invisible.
func checkMarkup(t *testing.T, page string) {
	t.Helper()
	require.Equal(t, plaintext.Block(page), page, "no control characters, and no marks of direction")
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	seen := map[string]bool{}
	for node := range root.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		require.NotContains(t, []string{"style", "img", "iframe", "object", "base", "b style"}, node.Data)
		attributes := map[string]string{}
		for _, attribute := range node.Attr {
			attributes[attribute.Key] = attribute.Val
			require.NotEqual(t, "style", attribute.Key)
			require.False(t, strings.HasPrefix(attribute.Key, "on"), attribute.Key)
		}
		if node.Data == "script" || node.Data == "link" {
			require.Regexp(t, ownFile, attributes["src"]+attributes["href"])
			require.Nil(t, node.FirstChild)
		}
		if href, found := attributes["href"]; found && node.Data == "a" {
			require.Regexp(t, `^(/|#|\?|http)`, href)
		}
		if node.Data == "form" {
			require.Regexp(t, `^/[a-z]`, attributes["action"])
		}
		if id, found := attributes["id"]; found {
			require.Regexp(t, machineID, id)
			require.False(t, seen[id], "two elements have the ID %s", id)
			seen[id] = true
		}
	}
}

func TestFilesAreKeptForEver(t *testing.T) {
	t.Parallel()
	handler := newSample().serve(t, ada)
	page := get(handler, "/").Body.String()
	for _, name := range []string{"style.css", "scripts.js", "icon.svg", "icon.png"} {
		path := regexp.MustCompile(`/assets/[0-9a-f]+/` + regexp.QuoteMeta(name)).FindString(page)
		got := get(handler, path)
		require.Equal(t, http.StatusOK, got.Code, path)
		require.Contains(t, got.Header().Get("Cache-Control"), "immutable")
		require.NotContains(t, got.Header().Get("Content-Type"), "text/plain")
		require.Equal(t, http.StatusNotFound, get(handler, "/assets/0000000000000000/"+name).Code, "an old page gets no other file")
	}
	icon := get(newSample().serve(t, access.Person{}), "/favicon.ico")
	require.Equal(t, http.StatusOK, icon.Code, "also for the login")
	require.Equal(t, "image/png", icon.Header().Get("Content-Type"))
	require.True(t, strings.HasPrefix(icon.Body.String(), "\x89PNG"))
}

// TestParts checks that htmx gets a part of a page alone.
func TestParts(t *testing.T) {
	t.Parallel()
	handler := newSample().serve(t, ada)
	part := get(handler, "/", "HX-Request", "true", "HX-Request-Type", "partial", "HX-Target", "div#work").Body.String()
	require.Contains(t, part, "docker logs --tail 200 caddy")
	require.NotContains(t, part, "<html")
	require.NotContains(t, part, "what should happen?")
	whole := get(handler, "/", "HX-Request", "true", "HX-Request-Type", "partial", "HX-Target", "div#layout").Body.String()
	require.Contains(t, whole, "<html", "only parts of the page can be asked for")
}

func TestEvents(t *testing.T) {
	t.Parallel()
	position := "e-7"
	handler := newSample().serve(t, ada, func(o *Options) {
		o.Events, o.Position = "/api/v1/events", func() string { return position }
	})
	require.Contains(t, get(handler, "/").Body.String(), `hx-sse:connect="/api/v1/events?after=e-7"`)
	chain := html.UnescapeString(get(handler, "/chains/a%20b").Body.String())
	require.Contains(t, chain, `hx-sse:connect="/api/v1/events?after=e-7&chain=a+b"`)
	require.NotContains(t, get(handler, "/policy").Body.String(), "hx-sse:connect", "nothing on it changes by itself")
}

func TestRoles(t *testing.T) {
	t.Parallel()
	for role, want := range map[access.Role]struct{ answers, operates bool }{
		access.View: {false, false}, access.Answer: {true, false}, access.Operate: {true, true}, access.Alert: {},
	} {
		s := newSample()
		handler := s.serve(t, access.Person{Name: "eve", Roles: []access.Role{role}})
		for path, permitted := range map[string]bool{
			"/chains/c/answer": want.answers, "/gates/answer": want.answers, "/chains/c/escalate": want.operates, "/chains/c/cancel": want.operates,
			"/chains/cancel": want.operates, "/incidents/incident-7/close": want.operates, "/incidents/close": want.operates,
			"/incidents/incident-7/acknowledge": want.operates,
			"/memories":                         want.operates, "/memories/7/confirm": want.operates, "/memories/7/edit": want.operates, "/memories/7/delete": want.operates,
			"/schedules/s/pause": want.operates, "/schedules/s/resume": want.operates, "/schedules/s/trigger": want.operates,
		} {
			require.Equal(t, permitted, post(handler, path, "").Code != http.StatusForbidden, "%s %s", role, path)
		}
		page := get(handler, "/").Body.String()
		require.Equal(t, want.answers, strings.Contains(page, `action="/gates/answer"`), role)
		require.Equal(t, want.operates, strings.Contains(page, `action="/incidents/close"`), role)
		incident := get(handler, "/incidents/incident-8").Body.String()
		require.Equal(t, want.operates, strings.Contains(incident, `action="/incidents/incident-8/acknowledge"`), role)
		require.Equal(t, role != access.Alert, strings.Contains(incident, "snoozed</span> by grace, ends "), role)
		learned := get(handler, "/memories").Body.String()
		require.Equal(t, want.operates, strings.Contains(learned, `action="/memories/memory-7/confirm"`), role)
		require.NotContains(t, learned, `action="/memories/memory-3/confirm"`)
	}
}

// TestNothingActsByLooking checks that no GET changes anything, whatever it asks for.
func TestNothingActsByLooking(t *testing.T) {
	t.Parallel()
	s := newSample()
	handler := s.serve(t, ada)
	for _, path := range []string{"/chains/c/answer", "/chains/c/cancel", "/incidents/incident-7/close", "/memories/memory-7/confirm", "/schedules/hourly/pause"} {
		require.Equal(t, http.StatusNotFound, get(handler, path+"?action=abort&gate_id=gate-1").Code)
	}
	for _, path := range samplePaths() {
		get(handler, path+"?action=abort&gate_id=gate-1")
	}
	require.Empty(t, s.acts)
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ path, form, back, did, said string }{
		{
			"/chains/" + sampleChain + "/answer", "gate_id=gate-1&action=fix&guidance=look+at+the+disk&back=/", "/",
			"ada (verified: true) answers gate-1 of " + sampleChain + " with fix: look at the disk", "Answered: Tier 2 runs again in a new session.",
		},
		{"/chains/c/escalate", "tier=3&reason=it+burns&guidance=hurry", "/chains/c", "ada (verified: true) escalates c to 3: it burns: hurry", "Tier 3 is asked for."},
		{"/chains/c/cancel", "back=//evil.example", "/chains/c", "cancel c", "asked to end"},
		{"/chains/cancel", "ticked=a&ticked=b&back=/chains?state=running", "/chains?state=running", "cancel a\ncancel b", "2 chains asked to end."},
		{"/incidents/incident-7/close", "reason=replaced", "/incidents/incident-7", "ada (verified: true) closes incident-7: replaced", "incident-7 is closed."},
		{"/incidents/incident-7/acknowledge", "note=mine", "/incidents/incident-7", "ada (verified: true) acknowledges incident-7 for 0s (withdrawn: false): mine", "incident-7 is acknowledged. Nobody is reminded of it"},
		{"/incidents/incident-7/acknowledge", "hours=8", "/incidents/incident-7", "ada (verified: true) acknowledges incident-7 for 8h0m0s (withdrawn: false): ", "incident-7 is snoozed for 8 hours."},
		{"/incidents/incident-7/acknowledge", "withdrawn=1", "/incidents/incident-7", "ada (verified: true) acknowledges incident-7 for 0s (withdrawn: true): ", "incident-7 is no longer acknowledged."},
		{"/incidents/close", "ticked=incident-7&reason=gone", "/", "ada (verified: true) closes incident-7: gone", "1 incident closed."},
		{"/incidents/close", "", "/", "", "Nothing was changed: tick at least one incident"},
		{"/memories", "kind=discovery&service=web&subject=port&text=It+listens+on+port+1.", "/memories", "ada adds {discovery web port It listens on port 1.}", "memory-9 is added."},
		{"/memories/memory-7/confirm", "back=/memories/memory-7&revision=1", "/memories/memory-7", "ada confirms memory-7 at 1", "Confirmed."},
		{"/memories/memory-7/edit", "revision=3&kind=correction&subject=port&text=No.", "/memories/memory-7", "ada edits memory-7 at 3: correction  port No.", "memory-7 is changed"},
		{"/memories/memory-7/delete", "", "/memories", "ada deletes memory-7 at -1", "Deleted."},
		{"/schedules/hourly/pause", "note=holiday", "/schedules/hourly", "pause hourly: paused by ada: holiday", "is paused"},
		{"/schedules/hourly/resume", "", "/schedules/hourly", "resume hourly: resumed by ada", "is resumed"},
		{"/schedules/hourly/trigger", "", "/schedules/hourly", "trigger hourly", "starts a cycle"},
	} {
		s := newSample()
		handler := s.serve(t, ada)
		got := post(handler, test.path, test.form)
		require.Equal(t, http.StatusSeeOther, got.Code, "%s: %s", test.path, got.Body)
		require.Equal(t, test.back, got.Header().Get("Location"))
		require.Equal(t, test.did, strings.Join(s.acts, "\n"))
		cookie := got.Header().Get("Set-Cookie")
		require.Contains(t, cookie, "HttpOnly; SameSite=Strict")
		value, _, _ := strings.Cut(cookie, ";")
		followed := get(handler, test.back, "Cookie", value)
		require.Contains(t, html.UnescapeString(followed.Body.String()), test.said)
		require.Contains(t, followed.Header().Get("Set-Cookie"), "Max-Age=0", "the sentence is said once")
	}
}

// TestSeveralGates checks that one form answers several gates, and says which answers were refused.
func TestSeveralGates(t *testing.T) {
	t.Parallel()
	s := newSample()
	handler := s.serve(t, ada)
	form := url.Values{"action": {"override"}, "ticked": {"gate-1 " + sampleChain, "gate-9 chain-20260301-100000-c0ffee", "gate-1 unknown"}}
	got := post(handler, "/gates/answer", form.Encode())
	require.Equal(t, []string{"ada (verified: true) answers gate-1 of " + sampleChain + " with override: "}, s.acts)
	value, _, _ := strings.Cut(got.Header().Get("Set-Cookie"), ";")
	page := html.UnescapeString(get(handler, "/", "Cookie", value).Body.String())
	require.Contains(t, page, "1 gate answered. 2 refused: chain chain-20260301-100000-c0ffee: gate \"gate-9\" is not the one that is asked")
}

// TestAnswerToAnotherGate checks that an answer counts only for the gate that the person has seen, and that nobody has
// to type it again.
func TestAnswerToAnotherGate(t *testing.T) {
	t.Parallel()
	s := newSample()
	handler := s.serve(t, ada)
	got := post(handler, "/chains/"+sampleChain+"/answer", "gate_id=gate-0&action=fix&guidance=look+%3Chere%3E")
	require.Equal(t, http.StatusConflict, got.Code)
	page := got.Body.String()
	require.Contains(t, html.UnescapeString(page), `gate "gate-0" is not the one that is asked: it is gate-1`)
	require.Contains(t, page, "look &lt;here&gt;</textarea>")
	require.Contains(t, page, `value="fix" required checked`)
	require.Empty(t, s.acts)
	require.Equal(t, http.StatusUnprocessableEntity, post(handler, "/chains/c/answer", "gate_id=gate-1&action=dance").Code)
}

func TestChainFilter(t *testing.T) {
	t.Parallel()
	s := newSample()
	handler := s.serve(t, ada)
	got := get(handler, "/chains?state=retries&outcome=resolved&service=web&trigger=manual&incident=7&tier=2&since=2026-02-01&until=2026-02-02&cost=$0.5&after=key")
	require.Equal(t, http.StatusOK, got.Code)
	require.Equal(t, operations.ChainFilter{
		Retries: true, Outcome: "resolved", Service: "web", Trigger: "manual", Incident: "incident-7", Tier: 2, MinCostUSD: 0.5, Limit: chainsPerPage, After: "key",
		Since: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC),
	}, s.filter)
	require.Contains(t, got.Body.String(), "after=bmV4dA&amp;cost=", "the next page has the same filter")
	for query, problem := range map[string]string{
		"tier=4": "tier must be 1, 2 or 3", "cost=much": "cost must be a number", "since=yesterday": "must be a date from 1970-01-01", "outcome=great": "outcome is",
	} {
		got := get(handler, "/chains?"+query)
		require.Equal(t, http.StatusUnprocessableEntity, got.Code)
		require.Contains(t, got.Body.String(), problem)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{
		http.StatusUnprocessableEntity: operations.Invalid(fmt.Errorf("no such tier")), http.StatusConflict: operations.ErrNoGate,
		http.StatusNotFound: operations.ErrNoSuchChain, http.StatusServiceUnavailable: fmt.Errorf("Temporal cannot be reached"),
	} {
		s := newSample()
		s.err = err
		got := get(s.serve(t, ada), "/chains/c")
		require.Equal(t, want, got.Code)
		require.Contains(t, html.UnescapeString(got.Body.String()), err.Error())
	}
}

func TestRelative(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"now": -2 * time.Second, "30 s ago": -30 * time.Second, "in 12 min": 12*time.Minute + 20*time.Second, "3 h ago": -200 * time.Minute,
		"47 h ago": -47*time.Hour - 20*time.Minute, "2 days ago": -47*time.Hour - 40*time.Minute, "in 3 days": 71 * time.Hour,
	} {
		require.Equal(t, want, relative(d))
	}
}

func TestWordsAndNumbers(t *testing.T) {
	t.Parallel()
	require.Equal(t, "412\u202f009", grouped(412_009))
	require.Equal(t, "12", grouped(12))
	require.Equal(t, strings.Repeat("é", 9)+"…", cut(strings.Repeat("é", 1<<20), 10))
	require.Equal(t, strings.Repeat("é", 10), cut(strings.Repeat("é", 10), 10))
	require.Equal(t, []string{"1 byte", "2 kB", "5.0 MB"}, []string{byteCount(1), byteCount(2 << 10), byteCount(5 << 20)})
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	line := timelineOf(sampleSnapshot(), chaintest.Noon)
	require.Equal(t, chaintest.Noon.Add(-3*time.Hour), line.From)
	require.Equal(t, chaintest.Noon, line.To)
	require.True(t, line.Compressed)
	var names []string
	for _, lane := range line.Lanes {
		names = append(names, lane.Name)
		for _, bar := range lane.Bars {
			require.GreaterOrEqual(t, bar.X, 0.0)
			require.LessOrEqual(t, bar.X+bar.Width, 100.01)
		}
	}
	require.Equal(t, []string{"Tier 1", "Tier 2", "Tier 3", "Waits", "People"}, names)
	require.Equal(t, "#42 ×2", line.Lanes[1].Bars[0].Label)
	require.Greater(t, line.Lanes[1].Bars[0].X, line.Lanes[3].Bars[0].X, "the second session follows the wait")
	require.Len(t, line.Lanes[4].Bars, 1)
	require.Len(t, line.Lanes[4].Marks, 3, "people were told, reminded, and once could not be told")

	begun := escalation.Chain{StartedAt: chaintest.Noon, MaxTier: 2}
	require.False(t, timelineOf(operations.Snapshot{Chain: begun, Live: true}, chaintest.Noon).Drawn(), "nothing has happened yet")
}

// TestPlan checks the page of a chain that works on a plan: its phases, the roles and phases of its sessions, its
// reviews, and a gate that speaks of the phase.
func TestPlan(t *testing.T) {
	t.Parallel()
	s := newSample()
	page := get(s.serve(t, ada), "/chains/"+samplePlan).Body.String()
	for _, want := range []string{
		"(docs/ports.md)</h1>", "<h2 id=\"phases-title\">Phases</h2>", `<span class="state warn">waits for a person</span><br><span class="faint">verdict not ready, checks passed</span>`,
		`<span class="state calm">waiting</span>`, "<code>3f2a9c1d5e</code>", "</span>3 of 3<", "</span>$0.07<",
		"<b>author, phase 1, tier 2</b>", "<b>review, phase 1, tier 1</b>", ">Author</span>", ">Review</span>",
		"<title>Session #2, review, phase 1, opus, completed, $0.11</title>", ", phase 2 (The rule of the firewall): what should happen?",
		"<dt>Why</dt><dd>a person must decide: P1 open-door", "<dt>Review</dt><dd>3 lines in 1 file of <code>c6</code>, checks passed, verdict not ready, decided by a finding for a person<ol",
		"override: phase 2 is passed over without a commit", `<span class="state good">approved</span> <b>phase 1</b> <code>claudeops/plan-run-ports</code>`,
		"Its commits stay on their branch.", "run of docs/ports.md by ada", `<span class="state warn">verdict not ready</span>`,
	} {
		require.Contains(t, page, want)
	}
	above, _, _ := strings.Cut(page, "<dt>Review</dt>")
	require.Equal(t, 1, strings.Count(above, "a person must decide"), "the card of the gate says it")
	require.NotContains(t, page, "higher tier", "a plan has none")
	require.NotContains(t, page, "highest tier", "a plan has none")
	s.plan.Chain.Plan.Repository = "infra"
	require.Contains(t, get(s.serve(t, ada), "/chains/"+samplePlan).Body.String(), "run of docs/ports.md in infra by ada")
	s.plan = operations.Snapshot{Chain: chaintest.Amended()}
	amended := get(s.serve(t, ada), "/chains/"+samplePlan).Body.String()
	require.Contains(t, amended, `<span class="state good">approved</span> <b>the plan</b> <code>`)
	require.Contains(t, amended, `href="https://git.example.org/infra/pulls/7"`)
	s.plan.Chain.Plan.PullRequest = "javascript:window.owned=1"
	amended = get(s.serve(t, ada), "/chains/"+samplePlan).Body.String()
	require.NotContains(t, amended, `href="javascript:`)
	require.NotContains(t, amended, "ZgotmplZ", "an address that is no link is text")
	s.plan.Chain.Plan.Phases = nil
	require.Contains(t, get(s.serve(t, ada), "/chains/"+samplePlan).Body.String(), "Its phases are not read yet.")
}

// TestPlansInLists checks that lists name the file of a plan, if it is known.
func TestPlansInLists(t *testing.T) {
	t.Parallel()
	s := newSample()
	gate := *s.plan.Chain.OpenGate()
	s.now.Gates.Gates = append(s.now.Gates.Gates, operations.GateRow{ChainID: samplePlan, Gate: &gate})
	handler := s.serve(t, ada)
	require.Contains(t, get(handler, "/chains").Body.String(), ">Plan docs/ports.md: ")
	now := get(handler, "/").Body.String()
	require.Contains(t, now, "author, phase 2, tier 2 sonnet</span></a> plan <code>docs/disks.md</code>")
	require.Contains(t, now, "docs/ports.md, phase 2: what should happen?")
	require.Contains(t, now, "At the gate of a plan, fix and override are about its phase")
	require.NotContains(t, get(newSample().serve(t, ada), "/").Body.String(), "At the gate of a plan")
	gate.Plan, s.now.Work.Chains[2].Plan = "", ""
	now = get(handler, "/").Body.String()
	require.Contains(t, now, "</a> a plan <span")
	require.Contains(t, now, "A plan, phase 2: what should happen?")
}

// TestContinueAtTheGateOfAPlan checks that the page offers to continue a session exactly where the gate does, and takes
// that answer.
func TestContinueAtTheGateOfAPlan(t *testing.T) {
	t.Parallel()
	const choice, meaning = `<input type="radio" name="action" value="continue_session" required>`, "continue: the author goes on and keeps what it knows"
	const form = "gate_id=gate-1&action=continue_session&guidance=use+port+8443"
	for name, c := range map[string]struct {
		chain   escalation.Chain
		offered bool
		session string
	}{
		"an author that was interrupted": {chaintest.Resumable(), true, "the author&#39;s session took too long"},
		"a finding of the reviewer":      {chaintest.Planned(), false, "cannot be continued: the next step is a correction, and the last session was that of the reviewer"},
	} {
		s := newSample()
		gate := c.chain.OpenGate()
		s.plan.Chain = c.chain
		s.now.Gates.Gates = []operations.GateRow{{ChainID: samplePlan, Gate: gate}}
		handler := s.serve(t, ada)
		for _, path := range []string{"/", "/chains/" + samplePlan} {
			page := get(handler, path).Body.String()
			require.Contains(t, page, c.session, "%s on %s", name, path)
			require.Equal(t, c.offered, strings.Contains(page, choice+" <span>"+meaning), "%s on %s", name, path)
			require.Contains(t, page, "fix: the author starts fresh", "%s on %s", name, path)
		}
		answered := post(handler, "/chains/"+samplePlan+"/answer", form)
		if !c.offered {
			require.Equal(t, http.StatusConflict, answered.Code)
			require.Contains(t, html.UnescapeString(answered.Body.String()), "gate-1 does not offer to continue: the next step is a correction")
			require.Empty(t, s.acts)
			continue
		}
		require.Equal(t, http.StatusSeeOther, answered.Code, answered.Body)
		require.Equal(t, []string{"ada (verified: true) answers gate-1 of " + samplePlan + " with continue_session: use port 8443"}, s.acts)
	}
}

// TestCutListsSaySo checks that a page that shows a part of a list says how many others there are.
func TestCutListsSaySo(t *testing.T) {
	t.Parallel()
	s := newSample()
	handler := s.serve(t, ada)
	require.Contains(t, get(handler, "/").Body.String(), `<a class="button" href="/incidents">All 3 incidents</a>`)
	require.NotContains(t, get(handler, "/memories").Body.String(), "more match")
	s.memories = slices.Repeat(s.memories[:1], maxMemories+3)
	page := get(handler, "/memories").Body.String()
	require.Contains(t, page, "3 more match: filter by a service or by words.")
	require.Equal(t, maxMemories, strings.Count(page, `href="/memories/memory-7"`))
}
