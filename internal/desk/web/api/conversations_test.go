package api

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/claudesim"
	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/systemtest/webtest"
)

// longReply is a reply that is written for some seconds: a stream looks at it once a second.
var longReply = strings.Repeat("The disk of nas is full. ", 16)

// talking is a scenario of conversations.
func talking() claudesim.Scenario {
	return claudesim.Play(
		claudesim.On(claudesim.Match{Prompt: "how is nas"}, claudesim.Conclude(escalation.TalkReply{Reply: longReply}).InPieces(400*time.Millisecond)),
		claudesim.On(claudesim.Match{Prompt: "wait for me"}, claudesim.Bash("sleep 600")),
		claudesim.On(claudesim.Match{Prompt: "what now"}, claudesim.Conclude(escalation.TalkReply{
			Reply: "Look at nas.", Proposals: []escalation.Proposal{{Kind: escalation.ProposeChain, Why: "to see", Prompt: "look", Services: []string{"nas"}}},
			Memories: []escalation.MemoryProposal{{Kind: escalation.MemoryDiscovery, Service: "nas", Subject: "disk", Text: "Its disk is small."}},
		})),
		claudesim.Always(claudesim.Conclude(escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all answer"})))
}

// watchTalk opens the stream of a conversation, and returns a function that reads the news until one of a turn
// has a kind. That function returns the text that has come.
func (s *site) watchTalk(t *testing.T, token, name string) (until func(turn int, kind operations.TalkEventKind) (text string)) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/conversations/"+name+"/events", http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := s.Client().Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	lines := bufio.NewScanner(response.Body)
	return func(turn int, kind operations.TalkEventKind) (text string) {
		for lines.Scan() {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is {
				continue
			}
			var news operations.TalkNews
			require.NoError(t, json.Unmarshal([]byte(data), &news))
			text += news.Text
			if news.Number == turn && news.Kind == kind {
				return text
			}
		}
		require.Fail(t, "the stream has ended", lines.Err())
		return ""
	}
}

// TestConversations talks through the API: as the person to whom the conversation belongs, and as others.
func TestConversations(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Install(t, talking(), "CLAUDEOPS_HEARTBEAT_INTERVAL=1s"))
	grant := func(name string, roles ...access.Role) string {
		token, err := s.tokens.Create(access.Token{Name: name, Roles: roles})
		require.NoError(t, err)
		return token
	}
	grace, odd := grant("grace", access.Talk), grant("Odd Name", access.Talk, access.View)
	const path = "/api/v1/conversations"
	send := func(token, name, id, text string) answer {
		return s.askAs(t, token, "POST", path+"/"+name+"/messages", map[string]string{"message_id": id, "text": text})
	}
	require.Equal(t, http.StatusForbidden, send(s.viewer, "bob", "m", "x").status, "to look is not to talk")
	require.Equal(t, http.StatusForbidden, send(grace, "ada", "m", "x").status)
	require.Contains(t, string(send(odd, "grace", "m", "x").body), "yours is person-Odd-Name-")
	require.Equal(t, http.StatusForbidden, s.askAs(t, grace, "GET", path+"/ada/events", nil).status)

	until := s.watchTalk(t, grace, "grace")
	for range 2 {
		sent := send(grace, "grace", "m-1", "how is nas?")
		require.JSONEq(t, `{"turn":1}`, string(sent.body), "the same message has one turn")
	}
	other := send(grace, "grace", "m-1", "how is jellyfin?")
	require.Equal(t, http.StatusConflict, other.status, "the ID belongs to another text")
	require.Contains(t, string(other.body), "has another text or sender")
	first := until(1, operations.TalkText)
	require.NotEmpty(t, first)
	require.True(t, strings.HasPrefix(longReply, first), first)
	require.Less(t, len(first), len(longReply)-10, "it is shown while it is written")
	rest := until(1, operations.TalkEnded)
	require.True(t, strings.HasPrefix(longReply, first+rest), rest)
	var turn escalation.TalkTurn
	s.askAs(t, grace, "GET", path+"/grace/turns/1?wait=true", nil).into(t, &turn)
	require.Equal(t, strings.TrimSpace(longReply), strings.TrimSpace(turn.Reply))
	require.Equal(t, "how is nas?", turn.Text)
	require.Contains(t, turn.Context, "person: `grace`")
	require.Positive(t, turn.CostUSD)

	require.Equal(t, http.StatusOK, send(grace, "grace", "m-2", "what now?").status)
	s.askAs(t, grace, "GET", path+"/grace/turns/2?wait=true", nil).into(t, &turn)
	require.Len(t, turn.Proposals, 2, "and one for the memory")
	confirm := path + "/grace/turns/2/proposals/1/confirm"
	refused := s.askAs(t, grace, "POST", confirm, nil)
	require.Equal(t, http.StatusForbidden, refused.status)
	require.Contains(t, string(refused.body), "it needs the role operate")
	require.NotContains(t, string(s.ask(t, "GET", "/api/v1/chains", nil).body), "conversation-grace")
	require.JSONEq(t, `{"result":"started chain chain-conversation-grace-2-1"}`, string(s.ask(t, "POST", confirm, nil).body))
	require.Equal(t, http.StatusConflict, s.ask(t, "POST", confirm, nil).status)
	var chain operations.Snapshot
	s.ask(t, "GET", "/api/v1/chains/chain-conversation-grace-2-1", nil).into(t, &chain)
	require.Equal(t, "ada", chain.Chain.Actor)

	require.Equal(t, http.StatusOK, send(grace, "grace", "m-3", "wait for me").status)
	until(3, operations.TalkWorks)
	var waits sync.WaitGroup
	ended := make(chan answer, maxWaits)
	for range maxWaits {
		waits.Go(func() {
			for { // a question of the loop below can have the last place
				if got := s.askAs(t, grace, "GET", path+"/grace/turns/3?wait=true", nil); got.status != http.StatusTooManyRequests {
					ended <- got
					return
				}
			}
		})
	}
	require.Eventually(t, func() bool {
		return s.askAs(t, grace, "GET", path+"/grace/turns/1?wait=true", nil).status == http.StatusTooManyRequests
	}, testTimeout, testLook, "a person waits for so many turns at the same time")
	require.NotEmpty(t, s.askAs(t, grace, "GET", path+"/grace/turns/1?wait=true", nil).header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, s.askAs(t, grace, "GET", path+"/grace/turns/1", nil).status, "who does not wait is not counted")
	require.Equal(t, http.StatusOK, s.ask(t, "GET", path+"/grace/turns/1?wait=true", nil).status, "and others may wait")
	require.JSONEq(t, `{"turn":3}`, string(s.askAs(t, grace, "POST", path+"/grace/stop", nil).body))
	until(3, operations.TalkEnded)
	waits.Wait()
	for range maxWaits {
		require.Equal(t, http.StatusOK, (<-ended).status)
	}
	require.Equal(t, http.StatusOK, s.askAs(t, grace, "GET", path+"/grace/turns/1?wait=true", nil).status, "the places are free again")
	var turns turnList
	s.ask(t, "GET", path+"/grace/turns?limit=2", nil).into(t, &turns)
	require.Len(t, turns.Turns, 2)
	require.Equal(t, escalation.TalkStopped, turns.Turns[1].State)
	var viewed, all conversationList
	s.askAs(t, odd, "GET", path, nil).into(t, &viewed)
	require.Len(t, viewed.Conversations, 1, "who may view reads those of others")
	s.ask(t, "GET", path, nil).into(t, &all)
	require.Len(t, all.Conversations, 1)
	require.Equal(t, operations.ConversationRow{
		Name: "grace", Turn: 3, State: escalation.TalkStopped, Actor: "grace", Head: "wait for me", ReceivedAt: all.Conversations[0].ReceivedAt,
	}, all.Conversations[0])
	requireMemories(t, s)
}

// TestChainsComeFirst sends four slow messages, of two people: one is answered in one conversation at a time, and two
// turns run at most. A repair beside them begins and ends at once, although there is one place for agents of chains.
// Then the turns that wait get their places.
func TestChainsComeFirst(t *testing.T) {
	t.Parallel()
	s := serve(t, webtest.Install(t, talking(), "CLAUDEOPS_HEARTBEAT_INTERVAL=1s", "CLAUDEOPS_MAX_CONCURRENT_AGENTS=1"))
	grace, err := s.tokens.Create(access.Token{Name: "grace", Roles: []access.Role{access.Talk}})
	require.NoError(t, err)
	const path = "/api/v1/conversations/"
	send := func(token, name string) {
		t.Helper()
		got := s.askAs(t, token, "POST", path+name+"/messages", map[string]string{"message_id": "m-" + name, "text": "wait for me"})
		require.Equal(t, http.StatusOK, got.status, string(got.body))
	}
	running := func(names ...string) (count int) {
		t.Helper()
		for _, name := range names {
			var now operations.LiveConversation
			s.ask(t, "GET", path+name, nil).into(t, &now)
			if len(now.Turns) > 0 && now.Turns[0].State == escalation.TalkRunning && now.Progress != nil {
				count++
			}
		}
		return count
	}
	adas := []string{"ada", "second", "third"}
	for _, name := range adas {
		send(ownersToken, name)
	}
	send(grace, "grace")
	require.Eventually(t, func() bool { return running(adas...) == 1 && running("grace") == 1 }, testTimeout, testLook)
	require.Eventually(t, func() bool {
		waiting := 0
		for _, name := range adas {
			waiting += strings.Count(string(s.ask(t, "GET", path+name, nil).body), `"waits":"`)
		}
		return waiting == len(adas)-1
	}, testTimeout, testLook, "they say that they wait")

	repair := map[string]any{"id": "chain-repair", "start_tier": 2, "services": []string{"nas"}, "prompt": "repair it"}
	started := s.ask(t, "POST", "/api/v1/chains", repair)
	require.Equal(t, http.StatusCreated, started.status, string(started.body))
	var chain operations.Snapshot
	require.Eventually(t, func() bool {
		s.ask(t, "GET", "/api/v1/chains/chain-repair", nil).into(t, &chain)
		return chain.Chain.Outcome != ""
	}, testTimeout, testLook)
	require.Equal(t, escalation.OutcomeHealthy, chain.Chain.Outcome)
	// An attempt that begins again on a busy machine has no progress for a moment.
	require.Eventually(t, func() bool { return running(adas...) == 1 && running("grace") == 1 }, testTimeout, testLook,
		"the repair has taken nobody's place, and got none from a turn")

	for left := len(adas); left > 0; left-- {
		var at int
		require.Eventually(t, func() bool {
			at = slices.IndexFunc(adas, func(name string) bool { return running(name) == 1 })
			return at >= 0
		}, testTimeout, testLook)
		require.Equal(t, http.StatusOK, s.ask(t, "POST", path+adas[at]+"/stop", nil).status)
		require.Eventually(t, func() bool { // a turn that is being stopped still runs
			var now operations.LiveConversation
			s.ask(t, "GET", path+adas[at], nil).into(t, &now)
			return len(now.Turns) == 0 || now.Turns[0].State.Final()
		}, testTimeout, testLook)
		adas = slices.Delete(adas, at, at+1)
		require.Eventually(t, func() bool { return running(adas...) == min(1, left-1) }, testTimeout, testLook, "the next one gets its place")
	}
}

// requireMemories reads and changes what the conversation has proposed.
func requireMemories(t *testing.T, s *site) {
	t.Helper()
	const path = "/api/v1/memories"
	var list operations.MemoryPage
	s.askAs(t, s.viewer, "GET", path+"?search=small", nil).into(t, &list)
	require.Len(t, list.Memories, 1)
	require.Equal(t, memory.StatusCandidate, list.Memories[0].Status)
	id := list.Memories[0].ID
	require.Equal(t, http.StatusForbidden, s.askAs(t, s.viewer, "POST", path+"/"+id+"/confirm", nil).status)
	var one memory.Memory
	s.ask(t, "POST", path+"/"+id+"/confirm", nil).into(t, &one)
	require.Equal(t, memory.StatusConfirmed, one.Status)
	require.Equal(t, "ada", one.DecidedBy)
	require.Equal(t, http.StatusConflict, s.ask(t, "POST", path+"/"+id+"/confirm", nil).status)
	s.ask(t, "POST", path+"/"+id+"/edit", map[string]string{"text": "Its disk has 1 TB."}).into(t, &one)
	require.Equal(t, "Its disk has 1 TB.", one.Text)
	require.Equal(t, "disk", one.Subject)
	added := s.ask(t, "POST", path, escalation.MemoryProposal{Kind: escalation.MemoryCorrection, Subject: "name", Text: "It is called nas."})
	require.Equal(t, http.StatusCreated, added.status, string(added.body))
	s.ask(t, "POST", path+"/"+id+"/delete", nil).into(t, &one)
	require.Equal(t, memory.StatusDeleted, one.Status)
	s.askAs(t, s.viewer, "GET", path+"/"+id, nil).into(t, &one)
	require.NotEmpty(t, one.Sources)
}
