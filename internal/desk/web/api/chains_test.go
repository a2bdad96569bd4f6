package api

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/stream"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/systemtest/webtest"
)

// TestChainByAPI starts a chain, reads it, answers its gate and follows it to its end, over HTTP alone.
func TestChainByAPI(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Install(t, asking(), "CLAUDEOPS_GATE_TIMEOUT=1h"))
	events := s.listen(t, "/api/v1/events")

	started := s.startOnce(t)
	require.Contains(t, started.ChainID, "chain-key-")
	ofChain := s.listen(t, "/api/v1/events?chain="+started.ChainID)
	following := s.listen(t, "/api/v1/chains/"+started.ChainID+"/follow")

	var gates gateList
	require.Eventually(t, func() bool {
		s.ask(t, http.MethodGet, "/api/v1/gates", nil).into(t, &gates)
		return len(gates.Gates) == 1 && gates.Gates[0].Gate != nil
	}, testTimeout, testLook, "no gate is open")
	gate := gates.Gates[0].Gate
	path := "/api/v1/chains/" + started.ChainID
	var alone escalation.Gate
	s.ask(t, http.MethodGet, path+"/gate", nil).into(t, &alone)
	require.Equal(t, gate.ID, alone.ID)

	refused := s.ask(t, http.MethodPost, path+"/gate", map[string]any{"gate_id": "gate-9", "action": "fix"})
	require.Equal(t, http.StatusUnprocessableEntity, refused.status, string(refused.body))
	require.Contains(t, refused.problem(t).Detail, `gate "gate-9" is not the one that is asked: it is gate-1`)
	nameless := s.ask(t, http.MethodPost, path+"/gate", map[string]any{"action": "fix"})
	require.Equal(t, http.StatusUnprocessableEntity, nameless.status, "an answer names what it answers")
	posing := s.ask(t, http.MethodPost, path+"/gate", map[string]any{"gate_id": "gate-1", "action": "fix", "actor": "grace"})
	require.Equal(t, http.StatusUnprocessableEntity, posing.status, "nobody says who they are")
	viewing := s.askAs(t, s.viewer, http.MethodPost, path+"/gate", map[string]any{"gate_id": "gate-1", "action": "fix"})
	require.Equal(t, http.StatusForbidden, viewing.status)

	var resolution escalation.GateResolution
	s.ask(t, http.MethodPost, path+"/gate", map[string]any{
		"gate_id": "gate-1", "action": "fix", "guidance": "remove the lock",
	}).into(t, &resolution)
	require.Equal(t, escalation.GateFix, resolution.Action)

	var end stream.End
	require.NoError(t, json.Unmarshal([]byte(following.until(t, stream.EndEvent)), &end))
	require.Equal(t, escalation.OutcomeResolved, end.Snapshot.Chain.Outcome)
	require.Equal(t, "ada", end.Snapshot.Chain.Gates[0].Answer.Actor)
	require.True(t, end.Snapshot.Chain.Gates[0].Answer.Verified)
	require.True(t, end.Snapshot.Chain.Verified)
	require.Equal(t, "ada", end.Snapshot.Chain.Actor)
	s.requireRead(t, started.ChainID)
	for _, viewer := range []*listener{events, ofChain} {
		for _, kind := range []string{"session", "gate", "chain"} {
			viewer.until(t, kind)
		}
	}
	gone := s.ask(t, http.MethodPost, path+"/cancel", nil)
	require.Equal(t, http.StatusConflict, gone.status)
	require.Contains(t, gone.problem(t).Detail, "it has ended, and there is nothing to cancel")
}

// TestRefusedAtOnce asks for what the workers and the chain refuse at once, over HTTP.
func TestRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Install(t, asking(), "CLAUDEOPS_GATE_TIMEOUT=1h", "CLAUDEOPS_MAX_TIER=2", "CLAUDEOPS_GATE_APPROVERS=ada"))
	refused := func(status int, detail, path string, body map[string]any, headers ...string) {
		t.Helper()
		got := s.ask(t, http.MethodPost, "/api/v1/"+path, body, headers...)
		require.Equal(t, status, got.status, string(got.body))
		require.Contains(t, got.problem(t).Detail, detail)
	}
	const invalid, unknown, ended = http.StatusUnprocessableEntity, http.StatusNotFound, http.StatusConflict
	refused(invalid, "start_tier 3 is higher", "chains", map[string]any{"start_tier": 3})
	for range 2 {
		refused(invalid, "start_tier 3 is higher", "chains", map[string]any{"start_tier": 3}, "Idempotency-Key", "too high")
	}
	refused(invalid, `repository "elsewhere" is none`, "chains", map[string]any{"repository": "elsewhere"})
	refused(unknown, "no such chain", "chains/nobody/escalate", map[string]any{"to_tier": 2})
	refused(unknown, "no such chain", "chains/nobody/cancel", nil)
	refused(unknown, "no such chain", "chains/nobody/gate", map[string]any{"gate_id": "gate-1", "action": "fix"})

	require.Equal(t, http.StatusCreated, s.ask(t, http.MethodPost, "/api/v1/chains", map[string]any{"id": "asks", "max_tier": 2, "prompt": "look"}).status)
	require.Eventually(t, func() bool {
		return s.ask(t, http.MethodGet, "/api/v1/chains/asks/gate", nil).status == http.StatusOK
	}, testTimeout, testLook, "no gate is open")
	refused(invalid, "tier 3 is not possible: tier 2 is the highest allowed", "chains/asks/escalate", map[string]any{"to_tier": 3})
	refused(ended, "not everybody may answer at the gates of this chain", "chains/asks/escalate", map[string]any{"to_tier": 2, "force": true})
	require.Equal(t, http.StatusAccepted, s.ask(t, http.MethodPost, "/api/v1/chains/asks/cancel", nil).status)
	require.Eventually(t, func() bool {
		return s.ask(t, http.MethodPost, "/api/v1/chains/asks/cancel", nil).status == http.StatusConflict
	}, testTimeout, testLook, "the chain does not end")
	refused(ended, "it has ended", "chains/asks/escalate", map[string]any{"to_tier": 2})
	refused(ended, "it has ended", "chains/asks/gate", map[string]any{"gate_id": "gate-1", "action": "fix"})
}

// startOnce starts a chain with a key, many times and at once, and checks that it is started once.
func (s *site) startOnce(t *testing.T) operations.Started {
	t.Helper()
	body := map[string]any{"prompt": "look", "max_tier": 1, "services": []string{"jellyfin"}}
	var mutex sync.Mutex
	var answers []answer
	var starting errgroup.Group
	for range 5 { // fewer than one may start at once
		starting.Go(func() error {
			got := s.ask(t, http.MethodPost, "/api/v1/chains", body, "Idempotency-Key", "one wish")
			mutex.Lock()
			defer mutex.Unlock()
			answers = append(answers, got)
			return nil
		})
	}
	require.NoError(t, starting.Wait())
	fresh := 0
	var started operations.Started
	for _, got := range answers {
		var now operations.Started
		got.into(t, &now)
		require.Contains(t, []int{http.StatusCreated, http.StatusOK}, got.status)
		if got.status == http.StatusCreated {
			fresh++
		}
		require.True(t, started.ChainID == "" || started == now, "%v %v", started, now)
		started = now
	}
	require.Equal(t, 1, fresh)
	other := s.ask(t, http.MethodPost, "/api/v1/chains", map[string]any{"prompt": "look twice"}, "Idempotency-Key", "one wish")
	require.Equal(t, http.StatusConflict, other.status, string(other.body))
	require.Contains(t, other.problem(t).Detail, "the key was used before, with another input")
	both := s.ask(t, http.MethodPost, "/api/v1/chains", map[string]any{"id": "own"}, "Idempotency-Key", "another wish")
	require.Equal(t, http.StatusUnprocessableEntity, both.status)
	return started
}

// requireRead reads a chain that has ended by all routes.
func (s *site) requireRead(t *testing.T, id string) {
	t.Helper()
	var snapshot operations.Snapshot
	s.ask(t, http.MethodGet, "/api/v1/chains/"+id, nil).into(t, &snapshot)
	require.Equal(t, id, snapshot.Chain.ID)
	require.NotNil(t, snapshot.Calls)
	require.Len(t, snapshot.Chain.Sessions, 2)
	var found operations.Lineage
	s.ask(t, http.MethodGet, "/api/v1/sessions/2/lineage", nil).into(t, &found)
	require.NotEmpty(t, found.Backward)
	var calls callList
	s.ask(t, http.MethodGet, "/api/v1/sessions/1/calls?limit=1", nil).into(t, &calls)
	require.Equal(t, http.StatusNotFound, s.ask(t, http.MethodGet, "/api/v1/sessions/99/lineage", nil).status)

	second := s.ask(t, http.MethodPost, "/api/v1/chains", map[string]any{"id": "second", "dry_run": true})
	require.Equal(t, http.StatusCreated, second.status, string(second.body))
	again := s.ask(t, http.MethodPost, "/api/v1/chains", map[string]any{"id": "second"})
	require.Equal(t, http.StatusConflict, again.status)
	require.Equal(t, http.StatusAccepted, s.ask(t, http.MethodPost, "/api/v1/chains/second/cancel", nil).status)
	require.Eventually(t, func() bool {
		var ids []string
		for next := ""; ; {
			var page operations.ChainPage
			s.ask(t, http.MethodGet, "/api/v1/chains?limit=1&after="+next, nil).into(t, &page)
			require.LessOrEqual(t, len(page.Chains), 1)
			for _, row := range page.Chains {
				ids = append(ids, row.ID)
			}
			if next = page.Next; next == "" {
				break
			}
		}
		slices.Sort(ids)
		return slices.Equal(ids, []string{id, "second"})
	}, testTimeout, testLook, "the pages do not list both chains once")
	var incidents operations.IncidentPage
	s.ask(t, http.MethodGet, "/api/v1/incidents?all=true", nil).into(t, &incidents)
	require.NotNil(t, incidents.Incidents)
}

// problem decodes problem details.
func (a answer) problem(t testing.TB) huma.ErrorModel {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	var model huma.ErrorModel
	a.into(t, &model)
	require.Equal(t, a.status, model.Status)
	require.NotEmpty(t, model.Detail)
	return model
}

// listener reads a stream.
type listener struct{ lines *bufio.Scanner }

func (s *site) listen(t testing.TB, path string) *listener {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.viewer)
	response, err := s.Client().Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	return &listener{lines}
}

// until reads until an event of this kind, and returns its data.
func (l *listener) until(t testing.TB, kind string) string {
	t.Helper()
	for found := false; l.lines.Scan(); {
		if data, ok := strings.CutPrefix(l.lines.Text(), "data: "); ok && found {
			return data
		}
		found = l.lines.Text() == "event: "+kind
	}
	require.Fail(t, "the stream ended", "before an event %s: %v", kind, l.lines.Err())
	return ""
}
