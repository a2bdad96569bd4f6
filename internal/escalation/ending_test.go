package escalation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

// purposes are all roles that a session can have.
var purposes = []escalation.Purpose{
	escalation.PurposeTier, escalation.PurposeContinuation, escalation.PurposeRecheck, escalation.PurposeHandoff,
	escalation.PurposeTalk, escalation.PurposeReview, escalation.PurposeAuthor,
}

// TestTreat holds every cell of the table: each ending, in a new and in a resumed conversation, in each role.
func TestTreat(t *testing.T) {
	t.Parallel()
	const stop, anew, wait = escalation.SequelStop, escalation.SequelAnew, escalation.SequelWait
	rows := map[escalation.Ending]struct {
		attempts, talk int
		shorter        bool
		first, resumed escalation.Sequel
		continues      bool
	}{
		escalation.EndingNone:     {10, 3, false, stop, stop, true},
		escalation.EndingUnusable: {1, 1, false, stop, anew, false},
		escalation.EndingRefused:  {1, 1, false, stop, anew, false},
		escalation.EndingTooLong:  {1, 1, true, stop, stop, true},
		escalation.EndingLimited:  {1, 1, false, wait, wait, true},
		escalation.EndingAccount:  {1, 1, false, stop, stop, true},
		escalation.EndingProvider: {10, 3, false, stop, stop, true},
		escalation.EndingRequest:  {1, 1, false, stop, stop, false},
		escalation.EndingOurLimit: {1, 1, false, stop, stop, true},
		escalation.EndingGuard:    {1, 1, false, stop, stop, true},
		escalation.EndingNoResult: {1, 1, false, stop, stop, true},
		escalation.EndingUnknown:  {3, 3, false, stop, stop, true},
	}
	require.Len(t, rows, len(escalation.Endings()))
	for _, ending := range escalation.Endings() {
		row, found := rows[ending]
		require.True(t, found, ending)
		for _, purpose := range purposes {
			for _, resumed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/resumed=%t", ending, purpose, resumed), func(t *testing.T) {
					t.Parallel()
					want := escalation.Treatment{Attempts: row.attempts, Shorter: row.shorter, Then: row.first, Continues: row.continues}
					if resumed {
						want.Then = row.resumed
					}
					if purpose == escalation.PurposeTalk { // nobody waits for hours for an answer
						want.Attempts = row.talk
						if want.Then == wait {
							want.Then = stop
						}
					}
					if purpose == escalation.PurposeContinuation && want.Then == anew { // a person has chosen it, and chooses again
						want.Then = stop
					}
					got := escalation.Treat(ending, resumed, purpose)
					require.NotEmpty(t, got.Do)
					require.Equal(t, strings.ToLower(got.Do[:1]), got.Do[:1], "it follows a semicolon")
					got.Do = ""
					require.Equal(t, want, got)
				})
			}
		}
	}
}

// TestLasts lists the endings that a message, sent again as it is, meets again.
func TestLasts(t *testing.T) {
	t.Parallel()
	lasting := slices.DeleteFunc(escalation.Endings(), func(ending escalation.Ending) bool { return !ending.Lasts() })
	require.Equal(t, []escalation.Ending{
		escalation.EndingRefused, escalation.EndingTooLong, escalation.EndingRequest, escalation.EndingOurLimit, escalation.EndingGuard,
	}, lasting)
}

// TestTreatmentOfACorrection checks that a correction gets a new conversation, and one that a person has chosen does
// not.
func TestTreatmentOfACorrection(t *testing.T) {
	t.Parallel()
	for reason, want := range map[escalation.ContinuityReason]escalation.Sequel{
		escalation.ReasonCorrection: escalation.SequelAnew, escalation.ReasonInterrupted: escalation.SequelAnew,
		escalation.ReasonContinued: escalation.SequelStop,
	} {
		session := escalation.Session{
			Purpose: escalation.PurposeContinuation, Continuity: escalation.ContinuityResume, ContinuityReason: reason,
			Report: escalation.Report{Status: escalation.SessionResumeFailed, Ending: escalation.EndingUnusable},
		}
		require.Equal(t, want, session.Treatment().Then, reason)
	}
}

// TestDecideEnding follows each ending of a tier through the decision, the gate and what the gate offers.
func TestDecideEnding(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	policy := escalation.Policy{MaxTier: 3, Gate: escalation.GatePolicy{Timeout: escalation.Duration(time.Hour)}}
	policy.Cooldowns.MaxWait = escalation.Duration(6 * time.Hour)
	for _, ending := range escalation.Endings() {
		if ending == escalation.EndingNone || ending == escalation.EndingNoResult { // see Decide and the activity
			continue
		}
		for _, resumed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/resumed=%t", ending, resumed), func(t *testing.T) {
				t.Parallel()
				session := escalation.Session{
					SessionID: "s", Tier: 2, Continuity: escalation.ContinuityHandoff, ParentID: 7, StartedAt: at, EndedAt: at.Add(time.Minute),
					Report: escalation.Report{
						Status: escalation.SessionFailed, Error: "it says why", Ending: ending, LimitedUntil: at.Add(time.Hour), ReportedSessionID: "s",
					},
				}
				if resumed {
					session.Continuity = escalation.ContinuityResume
				}
				decision := escalation.Gated(policy, escalation.Decide(policy, session, escalation.DecisionInput{}))
				treated := session.Treatment()
				switch treated.Then {
				case escalation.SequelAnew:
					require.Equal(t, escalation.DecisionHandoff, decision.Action)
					require.Equal(t, escalation.Tier(2), decision.Tier)
					require.Contains(t, decision.Reason, "it says why")
				case escalation.SequelWait:
					require.Equal(t, escalation.DecisionWait, decision.Action)
					require.Equal(t, at.Add(time.Hour), decision.Until)
					late := session
					late.LimitedUntil = at.Add(7 * time.Hour)
					late.Tier = 1
					gate := escalation.Gated(policy, escalation.Decide(policy, late, escalation.DecisionInput{}))
					require.Equal(t, escalation.DecisionGate, gate.Action, "a chain waits no longer than for a cooldown")
					require.False(t, late.LookFailed(), "the next look may have a result")
					over := session
					over.LimitedUntil = at
					soon := escalation.Decide(policy, over, escalation.DecisionInput{})
					require.Equal(t, session.EndedAt.Add(time.Minute), soon.Until, "clocks differ")
					soon = escalation.Decide(policy, over, escalation.DecisionInput{WaitingSince: at.Add(-6 * time.Hour)})
					require.Equal(t, escalation.DecisionComplete, soon.Action, "but not for ever")
				case escalation.SequelStop:
					require.Equal(t, escalation.DecisionGate, decision.Action)
					require.Contains(t, decision.Reason, "it says why")
					gate := escalation.NewGate(policy, escalation.GateInput{
						Number: 1, At: at, Decision: decision, Tier: 2, Last: &session, Transcript: escalation.TranscriptReachable,
					})
					require.Contains(t, gate.Options, escalation.GateFix)
					require.Equal(t, treated.Continues, gate.Continuation != nil, gate.NoContinuation)
				}
			})
		}
	}
}
