package claude_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/cell/process"
	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/systemtest/simtest"
)

// patience limits short waits, with a margin for a busy machine.
const patience = 2 * time.Minute

// proxied runs a test on each real CLI behind the proxy.
func proxied(t *testing.T, scenario claudesim.Scenario, adjust func(*claude.Options), test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			test(t, newBench(t, backend{version: version, real: true, proxied: true}, scenario, adjust))
		})
	}
}

// TestABudgetEndsTheRunBeforeTheCall covers an agent that would exceed its budget. The proxy refuses the next API call,
// and the CLI must not retry it.
func TestABudgetEndsTheRunBeforeTheCall(t *testing.T) {
	endless := claudesim.Play(claudesim.Always(claudesim.Bash("echo 1"), claudesim.Bash("echo 2"), claudesim.Bash("echo 3"), claudesim.Say("done")))
	manyRetries := func(o *claude.Options) { o.MaxRetries = 10 }
	proxied(t, endless, manyRetries, func(t *testing.T, b *bench) {
		b.budget = 0.0000001
		result, count, err := b.startCounted(t.Context(), b.invocation("count"), nil)
		require.Equal(t, claude.KindRequest, claude.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "this session has spent its budget")
		require.Len(t, b.requests(), 1, "the second call does not begin")
		require.Equal(t, 1, count.OverBudget, "and the CLI does not try again")
		require.InDelta(t, result.CostUSD, count.CostUSD, 1e-9)
	})
}

// TestAKilledCLIsCostIsKnown kills the CLI during a tool call. The proxy must have counted the exact cost.
func TestAKilledCLIsCostIsKnown(t *testing.T) {
	tokens := claudesim.Usage{Input: 1000, Output: 70, CacheRead: 500, CacheCreation: 30}
	working := claudesim.Play(claudesim.Always(claudesim.Bash("echo 1").Using(tokens), claudesim.Bash("./slow.sh").Using(tokens)))
	proxied(t, working, nil, func(t *testing.T, b *bench) {
		started := b.slowCommand(t)
		pid := make(chan int, 1)
		go func() {
			cli := <-pid
			for !exists(started) && t.Context().Err() == nil {
				time.Sleep(20 * time.Millisecond)
			}
			_ = syscall.Kill(cli, syscall.SIGKILL)
		}()
		result, count, err := b.startCounted(t.Context(), b.invocation("work"), func(p claude.Progress) {
			select {
			case pid <- p.PID:
			default:
			}
		})
		require.Equal(t, claude.KindMalformed, claude.KindOf(err), "%v", err)
		require.True(t, result.CostEstimated, "the CLI has reported nothing")
		served := b.requests()
		require.Len(t, served, 2)
		want := 0.0
		for i := range served {
			want += b.cli.Price(served[i].Model, claude.CallUsage{Tokens: claude.Tokens{Input: 1000, Output: 70, CacheRead: 500, CacheCreation: 30}})
		}
		require.Positive(t, want)
		require.InDelta(t, want, count.CostUSD, 1e-12, "what the API served")
		require.Zero(t, count.Partial)
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// stallingAPI starts an API that begins to answer each call and then sends nothing more. begun gets a value for each
// such answer, and gone for each caller that has disconnected.
func stallingAPI(t *testing.T) (address string, begun, gone chan struct{}) {
	t.Helper()
	begun, gone = make(chan struct{}, 100), make(chan struct{}, 100)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: message_start\ndata: %s\n\n", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",`+
			`"model":"claude-haiku-4-5-20251001","content":[],"usage":{"input_tokens":1000,"output_tokens":1}}}`)
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}))
	t.Cleanup(api.Close)
	return api.URL, begun, gone
}

// TestAStalledStreamEndsThroughTheProxy covers an API that stops sending. First the watchdog ends the run, then a run's
// CLI is killed. In both cases the call to the API must end.
func TestAStalledStreamEndsThroughTheProxy(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			address, begun, gone := stallingAPI(t)
			stalling := func(o *claude.Options) { o.Environ = append(o.Environ, "ANTHROPIC_BASE_URL="+address) } // the last value counts
			b := newBench(t, backend{version: version, real: true, proxied: true}, claudesim.Play(claudesim.Always(claudesim.Say("never"))), stalling)

			invocation := b.invocation("look")
			invocation.Limits.Idle = 2 * b.tempo()
			_, count, err := b.startCounted(t.Context(), invocation, nil)
			require.Contains(t, []claude.ErrorKind{claude.KindStalled, claude.KindUnavailable}, claude.KindOf(err), "%v", err)
			require.Positive(t, count.Partial)
			require.Positive(t, count.CostUSD, "the input was used")
			for range count.Partial {
				<-begun
				<-gone
			}

			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			pid, ended := make(chan int, 1), make(chan struct{})
			go func() {
				cli := <-pid
				<-begun
				_ = syscall.Kill(cli, syscall.SIGKILL)
				<-gone
				close(ended)
			}()
			_, count, err = b.startCounted(ctx, b.invocation("look"), func(p claude.Progress) {
				select {
				case pid <- p.PID:
				default:
				}
			})
			require.Equal(t, claude.KindMalformed, claude.KindOf(err), "killed: %v", err)
			require.Equal(t, 1, count.Partial)
			select {
			case <-ended:
			case <-ctx.Done():
				t.Fatal("the call of the API has outlived its caller")
			}
		})
	}
}

// TestCommandsOfAProxiedCLIFindNoCredentials makes the agent print the environments of its command and of the command's
// parent. Neither may contain the API key.
func TestCommandsOfAProxiedCLIFindNoCredentials(t *testing.T) {
	proxied(t, claudesim.Play(claudesim.Always(claudesim.Bash("./show.sh"), claudesim.Say("seen"))), nil, func(t *testing.T, b *bench) {
		show := "#!/bin/sh\nenv\ncat /proc/self/environ /proc/$PPID/environ\n"
		require.NoError(t, process.WriteProgram(filepath.Join(b.dir, "show.sh"), []byte(show)))
		invocation := b.invocation("show")
		invocation.AllowedTools = []string{"Bash(./show.sh:*)"}
		b.run(t, invocation)
		shown := fmt.Sprint(b.requests()[1].ToolResults())
		require.Contains(t, shown, "ANTHROPIC_API_KEY=claudeops-session-")
		require.NotContains(t, shown, apiKey)
		require.NotContains(t, string(b.transcript(t, invocation.SessionID)), apiKey)
	})
}

// TestAProxiedCLIAsksAsItAsksTheAPI checks that the CLI sends the same requests to the proxy as to the API itself. At
// an unknown address the CLI would use fewer features, and cache its system prompt for one conversation only.
func TestAProxiedCLIAsksAsItAsksTheAPI(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		for gateway, mark := range map[bool]bool{true: false, false: true} {
			t.Run(fmt.Sprintf("%s/gateway=%t", simtest.Number(t, version), gateway), func(t *testing.T) {
				t.Parallel()
				api := simtest.StartAPI(t, claudesim.Play(claudesim.Always(claudesim.Say("hi"))))
				const key = "ANTHROPIC_API_KEY=" + apiKey
				unnamed := func(o *claude.Options) { o.Environ = []string{"PATH=" + os.Getenv("PATH"), key} }
				if gateway {
					unnamed = func(o *claude.Options) { o.Environ = append(o.Environ, "ANTHROPIC_BASE_URL="+api.URL()) }
				}
				b := newBench(t, backend{version: version, real: true, proxied: true}, claudesim.Play(claudesim.Always(claudesim.Say("hi"))), unnamed)
				b.proxy = startProxy(t, claude.Options{Environ: []string{key, "ANTHROPIC_BASE_URL=" + api.URL()}})
				b.run(t, b.invocation("look"))
				// The CLI adds a signature ("cch=") only if it assumes that it calls the API directly, and not a
				// gateway.
				require.Equal(t, mark, strings.Contains(api.Requests()[0].System, "cch="))
			})
		}
	}
}

// headersOf plays a scenario on an API that records the names of the headers of its calls.
func headersOf(t *testing.T, b backend, scenario claudesim.Scenario) []string {
	t.Helper()
	api := simtest.StartAPI(t, scenario)
	target, err := url.Parse(api.URL())
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	seen := make(chan http.Header, 100)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			seen <- r.Header.Clone()
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	at := func(o *claude.Options) { o.Environ = append(o.Environ, "ANTHROPIC_BASE_URL="+front.URL) } // the last value counts
	site := newBench(t, b, scenario, at)
	site.run(t, site.invocation("look"))
	return slices.Sorted(maps.Keys(<-seen))
}

// TestTheProxyPassesOnTheCLIsHeaders compares the headers that reach the API through the proxy with those that the CLI
// sends.
func TestTheProxyPassesOnTheCLIsHeaders(t *testing.T) {
	t.Parallel()
	for _, version := range simtest.Versions(t) {
		t.Run(simtest.Number(t, version), func(t *testing.T) {
			t.Parallel()
			scenario := claudesim.Play(claudesim.Always(claudesim.Say("hi")))
			direct := headersOf(t, backend{version: version, real: true}, scenario)
			require.Contains(t, direct, "Anthropic-Beta")
			direct = slices.DeleteFunc(direct, func(name string) bool { return name == "Connection" })
			require.Subset(t, headersOf(t, backend{version: version, real: true, proxied: true}, scenario), direct)
		})
	}
}
