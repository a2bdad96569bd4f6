package reconcile

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/plant/config"
	"github.com/claudeops/claudeops/internal/records/store"
)

// fakeArchive records the IDs of removed conversations. Removing those in stuck fails.
type fakeArchive struct {
	removed []string
	stuck   []string
}

func (a *fakeArchive) Remove(_ context.Context, sessionID string) error {
	if slices.Contains(a.stuck, sessionID) {
		return errors.New("the bucket is away")
	}
	a.removed = append(a.removed, sessionID)
	return nil
}

// TestRetention checks that chains that ended long ago are removed. Chains that run, wait or cannot be looked up must
// remain.
func TestRetention(t *testing.T) {
	t.Parallel()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	own := records
	now := time.Now()
	long := now.Add(-1000 * time.Hour)
	conversations := map[string]string{}
	for _, chain := range []string{"completed", "forgotten", "waiting", "away", "stuck", "then"} {
		session := escalation.Session{
			ChainID: chain, SessionID: uuid.NewString(), Tier: escalation.TierObserve, Trigger: escalation.TriggerManual, StartedAt: long,
		}
		_, err := own.OpenSession(t.Context(), session, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)})
		require.NoError(t, err)
		report := escalation.Report{
			Status: escalation.SessionCompleted, Verdict: &escalation.Verdict{Status: escalation.VerdictHealthy, Summary: "all is well"},
		}
		require.NoError(t, own.CloseSession(t.Context(), session.SessionID, report, long))
		conversations[chain] = session.SessionID
	}
	archive := &fakeArchive{stuck: []string{conversations["stuck"]}}
	var log bytes.Buffer
	retention := Retention{
		Records: own, Talks: own, Archive: archive, Holder: "a", Keep: 800 * time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Temporal: fakeChains{
			"completed": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED),
			"stuck":     chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED),
			"then":      chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED),
			"waiting":   chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING),
		},
	}
	other := retention
	other.Holder = "b"

	require.ErrorContains(t, retention.remove(t.Context(), now),
		`remove the conversations of chain "stuck": the bucket is away (and 1 more like this)`)
	require.NoError(t, other.remove(t.Context(), now), "it is the other worker's duty")
	require.Equal(t, []string{conversations["completed"], conversations["forgotten"], conversations["then"]}, archive.removed,
		"what is stuck stops nothing else")
	require.Contains(t, log.String(), "chains=3 sessions=3 events=0 incidents=0")
	archive.stuck = nil
	require.ErrorContains(t, other.remove(t.Context(), now.Add(retentionInterval)), "look at chain away")
	require.Equal(t, conversations["stuck"], archive.removed[3])
	for chain, left := range map[string]int{"completed": 0, "forgotten": 0, "stuck": 0, "then": 0, "waiting": 1, "away": 1} {
		sessions, err := own.Chain(t.Context(), chain)
		require.NoError(t, err)
		require.Len(t, sessions, left, chain)
	}
	require.Len(t, archive.removed, 4)
}

// TestRetentionOfMemories checks that unconfirmed memories go after 90 days, even if all other records are kept.
func TestRetentionOfMemories(t *testing.T) {
	t.Parallel()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	now := time.Now()
	propose := func(text string, at time.Time) {
		t.Helper()
		proposal := escalation.MemoryProposal{Kind: escalation.MemoryDiscovery, Service: "web", Subject: "port", Text: text}
		_, err := records.ProposeMemories(t.Context(), memory.Source{Trust: memory.TrustOutput, At: at, SessionID: text},
			[]escalation.MemoryProposal{proposal})
		require.NoError(t, err)
	}
	propose("It listens on port 1.", now.Add(-memoryRetention-time.Minute))
	propose("It listens on port 2.", now.Add(-memoryRetention+time.Minute))
	retention := Retention{Records: records, Talks: records, Holder: "a", Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, retention.remove(t.Context(), now))
	left, err := records.Memories(t.Context(), store.MemoryFilter{})
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, "It listens on port 2.", left[0].Text)
}

// TestRetentionOfConversations checks that old turns are removed although their conversation runs, and that they remain
// where records are kept for ever.
func TestRetentionOfConversations(t *testing.T) {
	t.Parallel()
	for setting, removes := range map[string]bool{"": false, "0s": false, "744h": true, "87600h": false} {
		t.Run("RETENTION="+setting, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Load([]string{"HOME=" + t.TempDir(), "CLAUDEOPS_RETENTION=" + setting})
			require.NoError(t, err)
			testRetentionOfConversations(t, cfg.State.Retention, removes)
		})
	}
}

func testRetentionOfConversations(t *testing.T, keep time.Duration, removes bool) {
	t.Helper()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	own := records
	const conversation = "conversation-ada"
	now := time.Now()
	ids := map[int]string{1: uuid.NewString(), 2: uuid.NewString()}
	for turn, at := range map[int]time.Time{1: now.Add(-1000 * time.Hour), 2: now.Add(-time.Minute)} {
		session := escalation.Session{
			ChainID: conversation, SessionID: ids[turn], Tier: escalation.TierObserve, Purpose: escalation.PurposeTalk, StartedAt: at,
		}
		_, err := own.OpenSession(t.Context(), session, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 1)})
		require.NoError(t, err)
		report := escalation.Report{Status: escalation.SessionCompleted, Cost: escalation.Cost{CostUSD: 2}}
		require.NoError(t, own.CloseSession(t.Context(), session.SessionID, report, at))
		require.NoError(t, own.AppendEvents(t.Context(), []escalation.Event{{Key: ids[turn], ChainID: conversation, Message: "it began", At: at}}))
		stored, err := own.AddMessage(t.Context(), conversation, escalation.TalkMessage{MessageID: ids[turn], Text: "hello", Actor: "ada"}, 0, at)
		require.NoError(t, err)
		require.NoError(t, own.EndTurn(t.Context(), conversation, stored.Turn, escalation.TalkEnd{State: escalation.TalkAnswered, EndedAt: at}))
	}
	archive := &fakeArchive{}
	retention := Retention{
		Records: own, Talks: own, Archive: archive, Holder: "a", Keep: keep, Logger: slog.New(slog.DiscardHandler),
		Temporal: fakeChains{conversation: chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)},
	}
	require.NoError(t, retention.remove(t.Context(), now))
	kept, removed := []string{ids[2]}, []string{ids[1]}
	if !removes {
		kept, removed = []string{ids[2], ids[1]}, nil
	}
	require.Equal(t, removed, archive.removed)
	turns, err := own.TalkTurns(t.Context(), conversation, 10)
	require.NoError(t, err)
	messages := make([]string, 0, len(turns))
	for _, turn := range turns {
		messages = append(messages, turn.MessageID)
		_, err := own.BySessionID(t.Context(), turn.MessageID)
		require.NoError(t, err)
	}
	require.ElementsMatch(t, kept, messages)
	events, err := own.Events(t.Context(), conversation)
	require.NoError(t, err)
	require.Len(t, events, len(kept))
	spent, err := own.DaySpending(t.Context(), now.Add(-time.Minute))
	require.NoError(t, err)
	require.InDelta(t, 2.0, spent.SpentUSD, 1e-9)
}

// TestRetentionOfLockedConversations checks that a conversation under an object lock keeps its own records, and stops
// nothing else, however many there are.
func TestRetentionOfLockedConversations(t *testing.T) {
	t.Parallel()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	own := records
	now := time.Now()
	archive := &fakeArchive{}
	for i := range 250 {
		session := escalation.Session{
			ChainID: "conversation-ada", SessionID: uuid.NewString(), Tier: escalation.TierObserve, Purpose: escalation.PurposeTalk,
			StartedAt: now.Add(-1000 * time.Hour),
		}
		_, err := own.OpenSession(t.Context(), session, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 1)})
		require.NoError(t, err)
		require.NoError(t, own.CloseSession(t.Context(), session.SessionID, escalation.Report{Status: escalation.SessionCompleted}, session.StartedAt))
		if i < 150 {
			archive.stuck = append(archive.stuck, session.SessionID)
		}
	}
	retention := Retention{
		Records: own, Talks: own, Archive: archive, Holder: "a", Keep: 800 * time.Hour, Logger: slog.New(slog.DiscardHandler),
		Temporal: fakeChains{"conversation-ada": chainIn(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)},
	}
	require.ErrorContains(t, retention.remove(t.Context(), now), "the bucket is away (and 149 more like this)")
	require.Len(t, archive.removed, 100)
	left, err := own.Chain(t.Context(), "conversation-ada")
	require.NoError(t, err)
	require.Len(t, left, 150)
}

// TestRetentionWithAWrongClock checks that nothing is removed if the clock of this host has jumped, or differs from the
// database's.
func TestRetentionWithAWrongClock(t *testing.T) {
	t.Parallel()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ops.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	own := records
	now := time.Now()
	session := escalation.Session{ChainID: "yesterday", SessionID: uuid.NewString(), Tier: escalation.TierObserve, StartedAt: now.Add(-24 * time.Hour)}
	_, err = own.OpenSession(t.Context(), session, escalation.AdmissionRequest{}, escalation.Policy{Tiers: make([]escalation.TierPolicy, 1)})
	require.NoError(t, err)
	require.NoError(t, own.CloseSession(t.Context(), session.SessionID, escalation.Report{Status: escalation.SessionCompleted}, now))
	archive := &fakeArchive{}
	retention := Retention{
		Records: own, Talks: own, Archive: archive, Holder: "a", Keep: 800 * time.Hour, Logger: slog.New(slog.DiscardHandler),
		Temporal: fakeChains{},
	}
	require.ErrorContains(t, retention.remove(t.Context(), now.AddDate(3, 0, 0)), "otherwise set the clock", "at the first start")
	require.NoError(t, retention.remove(t.Context(), now))
	require.ErrorContains(t, retention.remove(t.Context(), now.AddDate(3, 0, 0)), "otherwise set the clock")
	away := retention
	away.Records = skewed{own, 20 * time.Minute}
	require.ErrorContains(t, away.remove(t.Context(), now), "synchronize both with NTP")
	require.Empty(t, archive.removed)
	left, err := own.Chain(t.Context(), "yesterday")
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// skewed are records in a database whose clock is behind that of this host.
type skewed struct {
	*store.Store

	behind time.Duration
}

func (s skewed) Now(_ context.Context, host time.Time) (time.Time, error) {
	return host.Add(-s.behind), nil
}
