package store_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

func testEveryField(t *testing.T, database backend) {
	open := database(t)
	first := open()
	parent := mustOpen(t, first, opening("chain", "parent", 0))

	var want escalation.Session
	fill(t, reflect.ValueOf(&want).Elem(), new(int))
	want.Unusable = ""                                              // no record has it: see Conversation
	want.ParentID, want.Tier = parent.ID, escalation.TierFullRepair // the parent must exist, and the policy must have the tier
	policy := lenient()
	policy.Tiers[want.Tier-1].BudgetUSD, policy.DryRun = want.BudgetUSD, want.DryRun
	opened, err := first.OpenSession(bounded(t), want, escalation.AdmissionRequest{}, policy)
	require.NoError(t, err)
	got := opened.Session
	want.ID, want.Sequence, want.Forced = got.ID, 1, false // the store sets these
	require.Equal(t, want, got)

	reread, err := open().BySessionID(bounded(t), got.SessionID)
	require.NoError(t, err)
	require.Equal(t, want, reread)
}

func testEveryReportField(t *testing.T, database backend) {
	s := database(t)()
	want := mustOpen(t, s, opening("chain", "session", 0))
	fill(t, reflect.ValueOf(&want.Report).Elem(), new(int))
	want.Continuity, want.ContinuityReason = escalation.ContinuityResume, escalation.ReasonInterrupted // derived from the report
	want.EndedAt = noon.Add(time.Minute + 7*time.Millisecond)
	require.NoError(t, s.CloseSession(bounded(t), "session", want.Report, want.EndedAt))

	got, err := s.BySessionID(bounded(t), "session")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// fill sets every field of v to a different value. So a field that is not stored, or is stored in another column, has a
// different value when it is read back.
func fill(t testing.TB, v reflect.Value, n *int) {
	t.Helper()
	*n++
	if at, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
		*at = noon.Add(time.Duration(*n) * time.Millisecond)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, n)
		}
	default:
		require.Fail(t, "fill cannot make a value", "of type %s", v.Type())
	}
}

func testInvalidText(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "session", 0))
	report := escalation.Report{Status: escalation.SessionFailed, Error: "exit 1: \xff\x00\\u0000"}
	for range 2 {
		require.NoError(t, s.CloseSession(bounded(t), "session", report, noon))
	}
	got, err := s.BySessionID(bounded(t), "session")
	require.NoError(t, err)
	require.Equal(t, "exit 1: \uFFFD\uFFFD\\u0000", got.Error)
	require.Empty(t, replaced(t, s, "session"))
}

func testSequence(t *testing.T, database backend) {
	s := database(t)()
	a1 := mustOpen(t, s, opening("a", "a1", 0))
	b1 := mustOpen(t, s, opening("b", "b1", 0))
	ignored := opening("a", "a2", a1.ID)
	ignored.ID, ignored.Sequence = 99, 99
	a2 := mustOpen(t, s, ignored)

	require.Equal(t, []int{1, 1, 2}, []int{a1.Sequence, b1.Sequence, a2.Sequence})
	require.Less(t, a1.ID, b1.ID)
	require.Less(t, b1.ID, a2.ID)
	require.NotEqual(t, int64(99), a2.ID)
	require.Equal(t, escalation.SessionRunning, a1.Status)
	require.Zero(t, a1.EndedAt)
}

func testOpenIdempotent(t *testing.T, database backend) {
	open := database(t)
	s := open()
	first := mustOpen(t, s, opening("chain", "session", 0))
	again := opening("chain", "session", 0)
	again.Model, again.StartedAt = "opus", noon.Add(time.Hour)
	require.Equal(t, first, mustOpen(t, open(), again))

	require.NoError(t, s.CloseSession(bounded(t), "session", completed(0.25), noon))
	require.Equal(t, escalation.SessionCompleted, mustOpen(t, s, again).Status, "a late retry does not reopen")

	chain, err := s.Chain(bounded(t), "chain")
	require.NoError(t, err)
	require.Len(t, chain, 1)
}

func testOpenRefuses(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "taken", 0))
	for name, test := range map[string]struct {
		change  func(*escalation.Session)
		want    error
		message string
	}{
		"session of another chain": {func(x *escalation.Session) { x.SessionID, x.ChainID = "taken", "other" }, store.ErrConflict, `chain "chain" has that session as record 1`},
		"unknown parent":           {func(x *escalation.Session) { x.ParentID = 4711 }, store.ErrNotFound, "its parent is record 4711"},
		"no session id":            {func(x *escalation.Session) { x.SessionID = "" }, store.ErrInvalid, "no session id"},
		"no chain id":              {func(x *escalation.Session) { x.ChainID = "" }, store.ErrInvalid, "no chain id"},
		"no start":                 {func(x *escalation.Session) { x.StartedAt = time.Time{} }, store.ErrInvalid, "no start time"},
		"no tier":                  {func(x *escalation.Session) { x.Tier = 0 }, store.ErrInvalid, "tier 0 is none"},
		"cost that is no number":   {func(x *escalation.Session) { x.CostUSD = math.NaN() }, store.ErrInvalid, "NaN"},
	} {
		t.Run(name, func(t *testing.T) {
			session := opening("chain", "new", 0)
			test.change(&session)
			_, err := openSession(bounded(t), s, session)
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.message)
			require.ErrorContains(t, err, fmt.Sprintf("record session %q", session.SessionID))
			require.False(t, store.IsTransient(err))
		})
	}
	chain, err := s.Chain(bounded(t), "chain")
	require.NoError(t, err)
	require.Len(t, chain, 1, "what was refused left nothing behind")
}

func testCloseIdempotent(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "session", 0))
	report := completed(0.1 + 0.2) // a value that decimal text might shorten
	report.Verdict.Checks = []escalation.CheckResult{}
	require.NoError(t, s.CloseSession(bounded(t), "session", report, noon))
	want, err := s.BySessionID(bounded(t), "session")
	require.NoError(t, err)
	require.Equal(t, 0.1+0.2, want.CostUSD) //nolint:testifylint // bit for bit is the promise

	require.NoError(t, s.CloseSession(bounded(t), "session", report, noon.Add(time.Hour)))
	got, err := s.BySessionID(bounded(t), "session")
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Empty(t, replaced(t, s, "session"))
}

func testCloseReplaces(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "session", 0))
	first, second := completed(0.25), completed(0.5)
	require.NoError(t, s.CloseSession(bounded(t), "session", first, noon))
	require.NoError(t, s.CloseSession(bounded(t), "session", second, noon.Add(time.Hour)))
	require.NoError(t, s.CloseSession(bounded(t), "session", first, noon), "a late retry of the first changes nothing")

	got, err := s.BySessionID(bounded(t), "session")
	require.NoError(t, err)
	require.Equal(t, second, got.Report)
	require.Equal(t, noon.Add(time.Hour), got.EndedAt)
	require.Equal(t, []escalation.Report{first}, replaced(t, s, "session"))
}

func replaced(t testing.TB, s *store.Store, sessionID string) []escalation.Report {
	t.Helper()
	reports, err := s.ReplacedReports(bounded(t), sessionID)
	require.NoError(t, err)
	return reports
}

func testCloseRefuses(t *testing.T, database backend) {
	s := database(t)()
	mustOpen(t, s, opening("chain", "session", 0))
	for name, test := range map[string]struct {
		sessionID string
		report    escalation.Report
		endedAt   time.Time
		want      error
	}{
		"unknown session": {"nobody", completed(0), noon, store.ErrNotFound},
		"still running":   {"session", escalation.Report{Status: escalation.SessionRunning}, noon, store.ErrInvalid},
		"no status":       {"session", escalation.Report{}, noon, store.ErrInvalid},
		"no end":          {"session", completed(0), time.Time{}, store.ErrInvalid},
		"endless cost":    {"session", completed(math.Inf(1)), noon, store.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.CloseSession(bounded(t), test.sessionID, test.report, test.endedAt)
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, fmt.Sprintf("close session %q", test.sessionID))
			require.False(t, store.IsTransient(err))
		})
	}
	got, err := s.BySessionID(bounded(t), "session")
	require.NoError(t, err)
	require.Equal(t, escalation.SessionRunning, got.Status)
}

func testNotFound(t *testing.T, database backend) {
	s := database(t)()
	for name, read := range map[string]func() error{
		"session id": func() error { _, err := s.BySessionID(bounded(t), "nobody"); return err },
		"forward":    func() error { _, err := s.Forward(bounded(t), 7); return err },
		"backward":   func() error { _, err := s.Backward(bounded(t), 7); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := read()
			require.ErrorIs(t, err, store.ErrNotFound)
			require.False(t, store.IsTransient(err))
		})
	}
}

// testUnusableConversation checks when the records say that a conversation cannot be resumed: a session has tried, and
// no later one shows that something else was wrong.
func testUnusableConversation(t *testing.T, database backend) {
	s := database(t)()
	end := func(parent escalation.Session, continuity escalation.Continuity, after time.Duration, report escalation.Report) {
		child := opening("chain", fmt.Sprintf("%s-%s", parent.SessionID, after), parent.ID)
		child.Continuity, child.StartedAt = continuity, noon.Add(after)
		mustOpen(t, s, child)
		mustClose(t, s, child.SessionID, report, noon.Add(after+time.Minute))
	}
	refused := escalation.Report{Status: escalation.SessionResumeFailed, Ending: escalation.EndingUnusable}
	for name, tt := range map[string]struct {
		first, then escalation.Report
		continuity  escalation.Continuity
		want        escalation.ContinuityReason
	}{
		"nobody has tried": {},
		"refused":          {first: refused, want: escalation.ReasonResumeFailed},
		"by the model": {
			first: escalation.Report{Status: escalation.SessionFailed, Ending: escalation.EndingRefused}, want: escalation.ReasonResumeFailed,
		},
		"lost":      {first: escalation.Report{Status: escalation.SessionTranscriptLost, Ending: escalation.EndingUnusable}},
		"an outage": {first: escalation.Report{Status: escalation.SessionFailed, Ending: escalation.EndingProvider}},
		"refused, then a handoff": {
			first: refused, continuity: escalation.ContinuityHandoff, then: completed(1), want: escalation.ReasonResumeFailed,
		},
		"refused, then resumed": {first: refused, continuity: escalation.ContinuityResume, then: completed(1)},
		"refused without it, too": {
			first: refused, continuity: escalation.ContinuityHandoff,
			then: escalation.Report{Status: escalation.SessionFailed, Ending: escalation.EndingRequest},
		},
	} {
		parent := mustOpen(t, s, opening("chain", name, 0))
		mustClose(t, s, name, completed(1), noon.Add(time.Minute))
		if tt.first.Status != "" {
			end(parent, escalation.ContinuityResume, time.Hour, tt.first)
		}
		if tt.then.Status != "" {
			end(parent, tt.continuity, 2*time.Hour, tt.then)
		}
		got, err := s.Conversation(bounded(t), name)
		require.NoError(t, err)
		require.Equal(t, tt.want, got.Unusable, name)
	}
	_, err := s.Conversation(bounded(t), "none")
	require.ErrorIs(t, err, store.ErrNotFound)
}
