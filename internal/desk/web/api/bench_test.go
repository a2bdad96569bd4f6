package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/plant/embedded"
	"github.com/claudeops/claudeops/internal/plant/supervisor"
	"github.com/claudeops/claudeops/internal/systemtest/webtest"
	"github.com/claudeops/claudeops/workflows"
)

const (
	// workingChains work at the same time.
	workingChains = 20
	// viewers look at one chain, and requests come requestsASecond times a second.
	viewers         = 200
	requestsASecond = 50
)

// slowCLI is a script that replaces claude: it waits, and prints what the real one prints of a healthy look.
const slowCLI = `#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--version) echo '%[1]s (Claude Code)'; exit ;;
	--session-id) id=$2; shift ;;
	--model) model=$2; shift ;;
	esac
	shift
done
cat >/dev/null
sleep 10
usage='"usage":{"input_tokens":100,"cache_creation_input_tokens":50,"cache_read_input_tokens":1000,"output_tokens":42}'
echo '{"type":"system","subtype":"init","session_id":"'$id'","tools":["Bash","StructuredOutput"],"model":"'$model'","permissionMode":"dontAsk","claude_code_version":"%[1]s"}'
echo '{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"'$model'","content":[{"type":"text","text":"done"}],'$usage'},"session_id":"'$id'"}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"duration_api_ms":5,"session_id":"'$id'","total_cost_usd":0.01,'$usage',"modelUsage":{"'$model'":{"inputTokens":100,"outputTokens":42,"cacheReadInputTokens":1000,"cacheCreationInputTokens":50,"costUSD":0.01,"contextWindow":200000}},"permission_denials":[],"terminal_reason":"completed","result":"done","structured_output":{"status":"healthy","summary":"all is well"}}'
`

// BenchmarkWeb compares how long 20 chains work alone, and beside 200 viewers of one of them and 50 requests a second.
// All of Temporal, worker, web server, viewers and requests share the cores.
func BenchmarkWeb(b *testing.B) {
	environ := append(webtest.Environ(b), "CLAUDEOPS_MAX_CONCURRENT_AGENTS=40", "CLAUDEOPS_MAX_TIER=1", "CLAUDEOPS_DAY_BUDGET_USD=0")
	script := filepath.Join(b.TempDir(), "claude")
	require.NoError(b, os.WriteFile(script, fmt.Appendf(nil, slowCLI, claudesim.VersionNew), 0o700))
	environ = append(environ, "CLAUDEOPS_CLAUDE="+script)
	cfg, err := config.Load(environ)
	require.NoError(b, err)
	require.NoError(b, cfg.MakeDirs())
	logger := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(b.Context(), embedded.Options{NoUI: true, Logger: logger})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Stop()) })
	environ = append(environ, "TEMPORAL_ADDRESS="+server.Address())
	webtest.Work(b, cfg, supervisor.Environment{Environ: environ, Host: "host-1", Logger: logger, SweepInterval: time.Minute})
	s := serve(b, environ)

	var tokens []string // a person has a limited number of streams
	for i := range 1 + viewers/stream.PerPerson {
		token, err := s.tokens.Create(access.Token{Name: fmt.Sprint("viewer ", i), Roles: []access.Role{access.View}})
		require.NoError(b, err)
		tokens = append(tokens, token)
	}
	var alone, beside, answers []time.Duration
	for round := 0; b.Loop(); round++ {
		alone = append(alone, s.chains(b, fmt.Sprintf("alone-%d", round))...)
		ids := fmt.Sprintf("beside-%d", round)
		ctx, stop := context.WithCancel(b.Context())
		var load sync.WaitGroup
		load.Go(func() { s.view(ctx, tokens, ids+"-0") })
		load.Go(func() { answers = append(answers, s.load(ctx, b, ids)...) })
		beside = append(beside, s.chains(b, ids)...)
		stop()
		load.Wait()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(mean(alone).Seconds(), "s/chain-alone")
	b.ReportMetric(mean(beside).Seconds(), "s/chain-beside")
	b.ReportMetric(float64(mean(beside))/float64(mean(alone)), "ratio")
	b.ReportMetric(float64(slices.Max(beside))/float64(slices.Max(alone)), "ratio-slowest")
	slices.Sort(answers)
	b.ReportMetric(float64(answers[len(answers)/2].Milliseconds()), "ms/request-median")
	b.ReportMetric(float64(answers[len(answers)*99/100].Milliseconds()), "ms/request-p99")
	b.ReportMetric(float64(len(answers)), "requests")
}

func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, one := range all {
		sum += one
	}
	return sum / time.Duration(len(all))
}

// chains starts chains and returns how long each has worked.
func (s *site) chains(b *testing.B, name string) []time.Duration {
	b.Helper()
	took := make([]time.Duration, workingChains)
	var working errgroup.Group
	for i := range workingChains {
		working.Go(func() error {
			id := fmt.Sprintf("%s-%d", name, i)
			started := time.Now()
			if _, err := s.operations.Chains.Start(b.Context(), id, workflows.ChainInput{MaxTier: 1, Services: []string{id}}); err != nil {
				return err
			}
			connection, _, err := s.operations.Connect(b.Context())
			if err != nil {
				return err
			}
			err = connection.GetWorkflow(b.Context(), id, "").Get(b.Context(), nil)
			took[i] = time.Since(started)
			return err
		})
	}
	require.NoError(b, working.Wait())
	return took
}

// view lets viewers look at a chain until ctx ends.
func (s *site) view(ctx context.Context, tokens []string, chainID string) {
	var all sync.WaitGroup
	for i := range viewers {
		all.Go(func() {
			for ctx.Err() == nil {
				s.fetch(ctx, tokens[i%len(tokens)], "/api/v1/events?chain="+chainID)
			}
		})
	}
	all.Wait()
}

// load sends requests until ctx ends, and returns how long each took.
func (s *site) load(ctx context.Context, b *testing.B, chains string) (took []time.Duration) {
	b.Helper()
	ticker := time.NewTicker(time.Second / requestsASecond)
	defer ticker.Stop()
	var mutex sync.Mutex
	var sending sync.WaitGroup
	defer sending.Wait()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return took
		case <-ticker.C:
		}
		paths := []string{
			fmt.Sprintf("/api/v1/chains/%s-%d", chains, i%workingChains), "/api/v1/chains?limit=50", "/api/v1/gates", "/api/v1/incidents",
			"/api/v1/schedules", fmt.Sprintf("/api/v1/sessions/%d/lineage", 1+i%workingChains), "/api/v1/costs",
		}
		sending.Go(func() {
			began := time.Now()
			s.fetch(ctx, ownersToken, paths[i%len(paths)])
			if ctx.Err() == nil {
				mutex.Lock()
				defer mutex.Unlock()
				took = append(took, time.Since(began))
			}
		})
	}
}

// fetch reads an answer to its end.
func (s *site) fetch(ctx context.Context, token, path string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, http.NoBody)
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := s.Client().Do(request)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body) // it ends with the context
}
