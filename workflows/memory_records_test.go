package workflows_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// memoryRecords keeps records in memory and admits sessions like the store. TestMemoryRecordsAreLikeTheStore compares
// them.
type memoryRecords struct {
	activities.Recorder

	mu       sync.Mutex
	sessions []escalation.Session
	entries  []escalation.LedgerEntry
	// locks holds the locks on services, by the keys of their names. A lock on all services has an empty key.
	locks  map[string]store.ServiceLock
	events []escalation.Event
	// wrongs lists calls that no chain may make.
	wrongs []string
}

var _ activities.Recorder = (*memoryRecords)(nil)

func newMemoryRecords() *memoryRecords {
	return &memoryRecords{locks: make(map[string]store.ServiceLock)}
}

func (m *memoryRecords) wrong(format string, args ...any) {
	m.wrongs = append(m.wrongs, fmt.Sprintf(format, args...))
}

func (m *memoryRecords) OpenSession(
	_ context.Context, session escalation.Session, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.AdmissionResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	request.ChainID, request.FirstRunID = session.ChainID, session.FirstRunID
	request.Tier, request.Purpose, request.At = session.Tier, session.Purpose, session.StartedAt
	facts := m.facts(request, policy)
	admission := escalation.Admit(policy, request, facts)
	opening := escalation.AdmissionResult{Services: facts.Services}
	if !admission.Granted {
		opening.Refusal = &admission
		return opening, nil
	}
	if request.Repairs(policy) {
		m.lock(request)
	}
	session.ID, session.Sequence = int64(len(m.sessions)+1), 1+len(m.of(session.ChainID))
	session.BudgetUSD, session.Forced, session.DryRun = admission.BudgetUSD, admission.Forced, policy.DryRun
	if slices.ContainsFunc(m.of(session.ChainID), isOpen) {
		m.wrong("session %d of %s was opened while another one is open", session.ID, session.ChainID)
	}
	m.sessions = append(m.sessions, session)
	opening.Session = session
	return opening, nil
}

// lock locks the services of a request that was admitted, or all services if it names none.
func (m *memoryRecords) lock(request escalation.AdmissionRequest) {
	services := request.Services
	if len(services) == 0 {
		services = []string{""}
	} else if m.locks[""].ChainID == request.ChainID {
		delete(m.locks, "")
	}
	for _, service := range services {
		key := escalation.ServiceKey(service)
		if known := m.locks[key]; known.ChainID == request.ChainID {
			service = known.Service // the first spelling stays
		}
		m.locks[key] = store.ServiceLock{Service: service, ChainID: request.ChainID, Since: request.At}
	}
}

// busy returns the locks of other chains that exclude a request.
func (m *memoryRecords) busy(request escalation.AdmissionRequest) (busy []escalation.BusyService) {
	for _, key := range slices.Sorted(maps.Keys(m.locks)) {
		lock := m.locks[key]
		if lock.ChainID != request.ChainID && (key == "" || len(request.Services) == 0 || escalation.HasService(request.Services, key)) {
			busy = append(busy, escalation.BusyService{Service: lock.Service, ChainID: lock.ChainID})
		}
	}
	return busy
}

func (m *memoryRecords) Review(
	_ context.Context, request escalation.AdmissionRequest, policy escalation.Policy,
) (escalation.Admission, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return escalation.Admit(policy, request, m.facts(request, policy)), nil
}

func (m *memoryRecords) facts(request escalation.AdmissionRequest, policy escalation.Policy) escalation.AdmissionFacts {
	var facts escalation.AdmissionFacts
	chains := map[string]bool{}
	for _, session := range m.sessions {
		spent := session.CostUSD
		if isOpen(session) || session.CostUnknown() {
			spent = max(spent, session.BudgetUSD)
		}
		if session.StartedAt.UTC().Truncate(24 * time.Hour).Equal(request.At.UTC().Truncate(24 * time.Hour)) {
			if isOpen(session) {
				facts.DayReservedUSD += spent
			} else {
				facts.DaySpentUSD += spent
			}
		}
		own := session.ChainID == request.ChainID && session.FirstRunID == request.FirstRunID
		if own && !isOpen(session) {
			facts.ChainSpentUSD += spent
		}
		switch {
		case !session.Repairs():
		case own:
			facts.Escalated = true
		case session.StartedAt.After(request.At.Add(-policy.EscalationLimit.Window.Std())):
			chains[session.ChainID+"/"+session.FirstRunID] = true
		}
	}
	facts.Escalations = len(chains)
	recent := slices.DeleteFunc(slices.Clone(m.entries), func(entry escalation.LedgerEntry) bool {
		return !entry.At.After(request.At.Add(-policy.Cooldowns.Window()))
	})
	facts.Services = policy.Cooldowns.States(recent, request.Services, request.At)
	facts.Busy = m.busy(request)
	return facts
}

func (m *memoryRecords) ReleaseServices(_ context.Context, chainID string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for service, lock := range m.locks {
		if lock.ChainID == chainID {
			delete(m.locks, service)
		}
	}
	return nil
}

func (m *memoryRecords) Conversation(_ context.Context, sessionID string) (escalation.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.find(sessionID)
	if at < 0 {
		return escalation.Session{}, store.ErrNotFound
	}
	return m.sessions[at], nil
}

func (m *memoryRecords) CloseSession(_ context.Context, sessionID string, report escalation.Report, endedAt time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.find(sessionID)
	if at < 0 || !isOpen(m.sessions[at]) {
		m.wrong("session %s was closed and is not open", sessionID)
		return nil
	}
	session := &m.sessions[at]
	session.Report, session.EndedAt = report, endedAt
	if session.MayHaveActed() {
		m.presume(*session)
	}
	if report.Verdict == nil {
		return nil
	}
	for _, action := range report.Verdict.Actions {
		if action.Kind.HasCooldown() {
			m.entries = append(m.entries, escalation.LedgerEntry{
				Service: action.Service, Kind: action.Kind, At: endedAt, ChainID: session.ChainID, SessionID: sessionID, Succeeded: action.Succeeded,
			})
		}
	}
	return nil
}

// presume adds a restart of each service that a session has locked, if the actions of the session are unknown.
func (m *memoryRecords) presume(session escalation.Session) {
	for _, key := range slices.Sorted(maps.Keys(m.locks)) {
		if lock := m.locks[key]; key != "" && lock.ChainID == session.ChainID && lock.Since.Equal(session.StartedAt) {
			m.entries = append(m.entries, escalation.LedgerEntry{
				Service: lock.Service, Kind: escalation.ActionRestart, At: session.EndedAt, ChainID: session.ChainID, SessionID: session.SessionID,
			})
		}
	}
}

// KnownIncidents returns none: the property test is about admission and the ledger.
func (m *memoryRecords) KnownIncidents(context.Context, escalation.KnownIncidents) ([]escalation.Incident, error) {
	return nil, nil
}

func (m *memoryRecords) GateNotes(context.Context, escalation.NotesRequest) (escalation.GateNotes, error) {
	return escalation.GateNotes{}, nil
}

func (m *memoryRecords) ChainIncidents(context.Context, escalation.ChainRun, string) (own, healed []escalation.Incident, err error) {
	return nil, nil, nil
}

func (m *memoryRecords) RecordProgress(context.Context, escalation.ChainRun, escalation.ChainProgress) error {
	return nil
}

func (m *memoryRecords) AppendEvents(_ context.Context, events []escalation.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, event := range events {
		if slices.ContainsFunc(m.events, func(known escalation.Event) bool { return known.Key == event.Key }) {
			m.wrong("event %s came twice", event.Key)
			continue
		}
		m.events = append(m.events, event)
	}
	return nil
}

func isOpen(session escalation.Session) bool { return session.EndedAt.IsZero() }

func (m *memoryRecords) find(sessionID string) int {
	return slices.IndexFunc(m.sessions, func(session escalation.Session) bool { return session.SessionID == sessionID })
}

// of returns the sessions of a chain.
func (m *memoryRecords) of(chainID string) []escalation.Session {
	return slices.DeleteFunc(slices.Clone(m.sessions), func(session escalation.Session) bool { return session.ChainID != chainID })
}

// eventsOf returns the events of a chain.
func (m *memoryRecords) eventsOf(chainID string) []escalation.Event {
	return slices.DeleteFunc(slices.Clone(m.events), func(event escalation.Event) bool { return event.ChainID != chainID })
}

// TestMemoryRecordsAreLikeTheStore checks that memoryRecords and the store admit and close the same random sessions
// alike.
func TestMemoryRecordsAreLikeTheStore(t *testing.T) {
	t.Parallel()
	records, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, records.Close()) })
	memory := newMemoryRecords()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var number int
	open := map[string]string{} // the open session of each chain
	rapid.Check(t, func(rt *rapid.T) {
		number++
		ctx := t.Context()
		at = at.Add(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 9 * time.Hour}).Draw(rt, "later"))
		policy := drawPolicy(rt)
		policy.MaxTier = escalation.TierFullRepair
		chainID := fmt.Sprint("chain ", rapid.IntRange(0, 4).Draw(rt, "chain"))
		if id := open[chainID]; id != "" {
			report := drawRun(rt).report(activities.RunTierInput{SessionID: id, Tier: 2})
			if rapid.IntRange(0, 4).Draw(rt, "unheard of") == 0 {
				report = escalation.Report{Status: escalation.SessionFailed, Cost: escalation.Cost{CostEstimated: true}}
			}
			require.NoError(rt, records.CloseSession(ctx, id, report, at))
			require.NoError(rt, memory.CloseSession(ctx, id, report, at))
			delete(open, chainID)
		}
		if rapid.Bool().Draw(rt, "releases") {
			require.NoError(rt, records.ReleaseServices(ctx, chainID))
			require.NoError(rt, memory.ReleaseServices(ctx, chainID))
		}
		firstRunID := fmt.Sprint("run ", number/8) // now and then another chain has the same ID
		request := escalation.AdmissionRequest{
			ChainID: chainID, FirstRunID: firstRunID,
			Tier: rapid.SampledFrom(escalation.Tiers()).Draw(rt, "tier"), At: at, Services: drawSpelled(rt),
			Force: rapid.Bool().Draw(rt, "force"), ChainSpentUSD: rapid.SampledFrom([]float64{0, 1}).Draw(rt, "spent"),
			Purpose: rapid.SampledFrom([]escalation.Purpose{escalation.PurposeTier, escalation.PurposeTier, escalation.PurposeHandoff}).Draw(rt, "purpose"),
		}
		want, err := records.Review(ctx, request, policy)
		require.NoError(rt, err)
		got, err := memory.Review(ctx, request, policy)
		require.NoError(rt, err)
		require.Equal(rt, roundedReason(want), roundedReason(got))

		session := escalation.Session{
			ChainID: chainID, FirstRunID: firstRunID, SessionID: fmt.Sprint("session ", number),
			Tier: request.Tier, Purpose: request.Purpose, StartedAt: at,
			Report: escalation.Report{Status: escalation.SessionRunning},
		}
		stored, err := records.OpenSession(ctx, session, request, policy)
		require.NoError(rt, err)
		kept, err := memory.OpenSession(ctx, session, request, policy)
		require.NoError(rt, err)
		require.Equal(rt, stored.Services, kept.Services)
		require.Equal(rt, stored.Session.ID, kept.Session.ID)
		require.Equal(rt, stored.Session.Sequence, kept.Session.Sequence)
		require.InDelta(rt, stored.Session.BudgetUSD, kept.Session.BudgetUSD, 1e-9)
		if stored.Refusal == nil {
			open[chainID] = session.SessionID
		}
	})
	require.Empty(t, memory.wrongs)
	require.Greater(t, len(memory.sessions), 5)
}

// roundedReason rounds the budget of an admission, because sums in another order differ in their last digits. It also
// trims the reason.
func roundedReason(admission escalation.Admission) escalation.Admission {
	admission.BudgetUSD = float64(int64(admission.BudgetUSD*1e6+0.5)) / 1e6
	admission.Reason = strings.TrimSpace(admission.Reason)
	return admission
}
