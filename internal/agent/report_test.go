package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/activities"
	"github.com/claudeops/claudeops/internal/cell/claude"
	"github.com/claudeops/claudeops/internal/escalation"
)

// TestJudged checks for each kind of failure what the records say of it: in a new conversation, in a resumed one before
// its first answer, and in a resumed one after it.
func TestJudged(t *testing.T) {
	t.Parallel()
	type end struct {
		status escalation.SessionStatus
		ending escalation.Ending
	}
	const failed, lost = escalation.SessionFailed, escalation.SessionResumeFailed
	same := func(status escalation.SessionStatus, ending escalation.Ending) [3]end {
		return [3]end{{status, ending}, {status, ending}, {status, ending}}
	}
	unusable := [3]end{{failed, escalation.EndingUnusable}, {lost, escalation.EndingUnusable}, {lost, escalation.EndingUnusable}}
	until := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for kind, want := range map[claude.ErrorKind][3]end{
		claude.KindInvalid:            same(failed, escalation.EndingRequest),
		claude.KindUsage:              same(failed, escalation.EndingRequest),
		claude.KindSessionInUse:       same(failed, escalation.EndingRequest),
		claude.KindNoConversation:     unusable,
		claude.KindPromptTooLong:      unusable,
		claude.KindRequest:            {{failed, escalation.EndingRequest}, {lost, escalation.EndingUnusable}, {failed, escalation.EndingRequest}},
		claude.KindRefused:            same(failed, escalation.EndingRefused),
		claude.KindAnswerTooLong:      same(failed, escalation.EndingTooLong),
		claude.KindLimited:            same(failed, escalation.EndingLimited),
		claude.KindAuth:               same(failed, escalation.EndingAccount),
		claude.KindUnavailable:        same(failed, escalation.EndingProvider),
		claude.KindStalled:            same(failed, escalation.EndingProvider),
		claude.KindMaxTurns:           same(escalation.SessionBudgetExhausted, escalation.EndingOurLimit),
		claude.KindBudget:             same(escalation.SessionBudgetExhausted, escalation.EndingOurLimit),
		claude.KindTimedOut:           same(escalation.SessionTimedOut, escalation.EndingOurLimit),
		claude.KindDiskFull:           same(failed, escalation.EndingOurLimit),
		claude.KindOutputTooLong:      same(failed, escalation.EndingOurLimit),
		claude.KindStopped:            same(escalation.SessionStopped, escalation.EndingNone),
		claude.KindSchemaNotMet:       same(escalation.SessionCompleted, escalation.EndingNone),
		claude.KindNoStructuredOutput: same(escalation.SessionCompleted, escalation.EndingNone),
		claude.KindMalformed:          same(failed, escalation.EndingUnknown),
		claude.KindFailed:             same(failed, escalation.EndingUnknown),
	} {
		for i, now := range []struct{ resumed, answered bool }{{false, false}, {true, false}, {true, true}} {
			failure := &claude.Error{Kind: kind, Message: "it says why", Answered: now.answered, Until: until, LimitKind: "seven_day_opus"}
			run := activities.AgentRun{Policy: escalation.TierPolicy{Model: "opus"}}
			if now.resumed {
				run.Resume = "parent"
			}
			got := judged(escalation.Report{Cost: escalation.Cost{CostUSD: 1}}, failure, run)
			ending := end{got.Status, got.Ending}
			require.Equal(t, want[i], ending, "%s %+v", kind, now)
			require.Equal(t, "it says why", got.Error)
			require.InDelta(t, 1, got.CostUSD, 0)
			require.Equal(t, kind == claude.KindLimited, !got.LimitedUntil.IsZero())
			require.Equal(t, kind == claude.KindLimited, got.LimitedModel == "opus")
		}
	}
	waited := judged(escalation.Report{DurationMS: 60_000}, &claude.Error{Kind: claude.KindStalled},
		activities.AgentRun{Policy: escalation.TierPolicy{Timeout: escalation.Duration(time.Minute)}})
	require.Equal(t, end{escalation.SessionTimedOut, escalation.EndingProvider}, end{waited.Status, waited.Ending})
	require.Equal(t, until.Add(10*time.Second), limitedUntil(until, until.Add(-time.Hour)))
	require.Equal(t, until.Add(8*24*time.Hour+10*time.Second), limitedUntil(until.AddDate(100, 0, 0), until), "no limit is that long")
	for name, end := range map[string]time.Time{"not said": {}, "over": until.Add(-time.Hour), "over now": until} {
		require.Equal(t, until.Add(time.Hour+10*time.Second), limitedUntil(end, until), "the provider does not say when: %s", name)
	}
}
