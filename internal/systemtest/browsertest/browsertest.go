// Package browsertest drives a real Chromium in tests. All tests of a package share one browser, and each tab has
// cookies of its own.
package browsertest

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const (
	// program is the system's Chromium.
	program = "chromium"
	// patience limits each step in the browser. On a busy machine, a page can take seconds.
	patience = 30 * time.Second
	// look is the time between two looks at a page that is to change.
	look = 50 * time.Millisecond
)

// browser starts the browser of this process at the first call. stop ends it; nil if it was not started.
var (
	browser = sync.OnceValues(start)
	stop    func()
)

// Run runs the tests of a package, and then stops the browser if one was started. Call it in TestMain.
func Run(m *testing.M) int {
	code := m.Run()
	if stop != nil {
		stop()
	}
	return code
}

// start starts a browser, and returns its context.
func start() (context.Context, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	allocated, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	started, stopBrowser := chromedp.NewContext(allocated)
	stop = func() { stopBrowser(); stopAllocator() }
	return started, chromedp.Do(started)
}

// Tab is a tab of the browser.
type Tab struct {
	t       testing.TB
	context context.Context //nolint:containedctx // chromedp keeps the tab in a context
}

// Open opens a tab without cookies. If there is no Chromium, Open skips the test, but fails it in CI.
func Open(t testing.TB) *Tab {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%s is not installed", program)
		t.Skipf("%s is not installed", program)
	}
	started, err := browser()
	require.NoError(t, err)
	return open(t, started, chromedp.WithNewBrowserContext())
}

// Another opens a tab in the browser's window, with the cookies of tab. The new tab is visible, and tab becomes hidden.
func (tab *Tab) Another() *Tab {
	tab.t.Helper()
	return open(tab.t, tab.context, chromedp.WithNewWindow(false))
}

func open(t testing.TB, parent context.Context, options ...chromedp.ContextOption) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, options...)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx)) // the first call opens the tab, which ends with this call's context
	return &Tab{t, ctx}
}

// Do performs actions.
func (tab *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.context, patience)
	defer cancel()
	require.NoError(tab.t, chromedp.Do(ctx, actions...))
}

// Get returns the value of an action.
func Get[T any](tab *Tab, action chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.context, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	require.NoError(tab.t, err)
	return value
}

// Eval returns the value of a JavaScript expression. If it is a promise, Eval waits for it.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	return Get(tab, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Show shows a page.
func (tab *Tab) Show(url string) {
	tab.t.Helper()
	tab.Do(chromedp.Navigate(url))
}

// Until waits until a JavaScript expression is true.
func (tab *Tab) Until(expression string) {
	tab.t.Helper()
	for began := time.Now(); ; time.Sleep(look) {
		// While a page gives way to the next one, the expression cannot be evaluated, or the browser says that it goes.
		ctx, cancel := context.WithTimeout(tab.context, patience)
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](
			"(() => { try { return !!("+expression+") } catch { return false } })()", chromedp.EvalAwaitPromise))
		cancel()
		if err != nil && !strings.Contains(err.Error(), "navigated or closed") {
			require.NoError(tab.t, err)
		}
		if err == nil && is {
			return
		}
		if time.Since(began) > patience {
			require.Failf(tab.t, "the page does not become as wanted", "%s\n%s", expression,
				Eval[string](tab, "document.body.innerText"))
		}
	}
}

// UntilText waits until the page shows a text.
func (tab *Tab) UntilText(text string) {
	tab.t.Helper()
	tab.Until("document.body.innerText.includes(" + quote(text) + ")")
}

// Leave clicks on something that leads to another page, and waits for that page.
func (tab *Tab) Leave(selector string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.context, patience)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
	require.NoError(tab.t, err)
}

// Look emulates a colour scheme, light or dark, and a width in pixels.
func (tab *Tab) Look(scheme string, width int64) {
	tab.t.Helper()
	tab.Do(chromedp.EmulateViewport(width, 800), func(ctx context.Context, target *chromedp.Target) (chromedp.Void,
		error,
	) {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return chromedp.Void{}, err
	})
}

// WithoutScripts switches JavaScript off for the pages that follow.
func (tab *Tab) WithoutScripts() {
	tab.t.Helper()
	tab.Do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	})
}

// Picture returns the whole page as a PNG.
func (tab *Tab) Picture() []byte {
	tab.t.Helper()
	return Get(tab, chromedp.FullScreenshot(100))
}

// Small returns what is visible of the page as a WebP, which is small.
func (tab *Tab) Small(height int64) (picture []byte) {
	tab.t.Helper()
	width := Eval[int64](tab, "innerWidth")
	tab.Do(chromedp.EmulateViewport(width, height), func(ctx context.Context, target *chromedp.Target) (chromedp.Void,
		error,
	) {
		taken, err := cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormatWebp, Quality: new(int64(80)),
		})
		picture = taken.Data
		return chromedp.Void{}, err
	})
	return picture
}

// quote returns text as a JavaScript string.
func quote(text string) string { return strconv.Quote(text) }

// ToFront makes the tab the visible one of its window.
func (tab *Tab) ToFront() {
	tab.t.Helper()
	tab.Do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, page.BringToFront, cdp.Empty{})
		return chromedp.Void{}, err
	})
}
