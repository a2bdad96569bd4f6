package escalation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
)

func openGate(actions ...escalation.GateAction) escalation.Gate {
	gate := escalation.Gate{ID: "gate-1", Options: actions, NoContinuation: "the transcript is gone"}
	for _, action := range actions {
		if action == escalation.GateContinue {
			gate.Continuation, gate.NoContinuation = &escalation.Continuation{SessionID: "s", Tier: 2}, ""
		}
	}
	return gate
}

var everyAction = []escalation.GateAction{
	escalation.GateContinue, escalation.GateFix, escalation.GateOverride, escalation.GateAbort,
}

func TestParseGateReply(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]escalation.GateAnswer{
		"c":                               {Action: escalation.GateContinue},
		" C ":                             {Action: escalation.GateContinue},
		"continue-session":                {Action: escalation.GateContinue},
		"continue_session":                {Action: escalation.GateContinue},
		"c: fix the import":               {Action: escalation.GateContinue, Guidance: "fix the import"},
		"continue-session: see a:b":       {Action: escalation.GateContinue, Guidance: "see a:b"},
		"f":                               {Action: escalation.GateFix},
		"fix:\nuse the second host\nonly": {Action: escalation.GateFix, Guidance: "use the second host\nonly"},
		"f:":                              {Action: escalation.GateFix},
		"o":                               {Action: escalation.GateOverride},
		"override: known":                 {Action: escalation.GateOverride, Guidance: "known"},
		"q":                               {Action: escalation.GateAbort},
		"Abort":                           {Action: escalation.GateAbort},
	} {
		want.GateID = "gate-1"
		got, err := escalation.ParseGateReply(openGate(everyAction...), text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseGateReplyRefuses(t *testing.T) {
	t.Parallel()
	withoutContinuation := openGate(everyAction[1:]...)
	for name, test := range map[string]struct {
		gate       escalation.Gate
		text, want string
	}{
		"nothing":  {openGate(everyAction...), "", `"" is no answer: type c (continue), f (fix), o (override), q (abort)`},
		"a word":   {withoutContinuation, "continue it", `"continue it" is no answer: type f (fix), o (override), q (abort)`},
		"c":        {withoutContinuation, "c: go on", "gate-1 does not offer to continue: the transcript is gone"},
		"fix":      {openGate(everyAction[2:]...), "f", "gate-1 does not offer to fix: choose o (override), q (abort)"},
		"too long": {withoutContinuation, "f: " + strings.Repeat("ä", 10_001), "guidance has 10001 characters, and at most 10000 are allowed"},
	} {
		_, err := escalation.ParseGateReply(test.gate, test.text)
		require.EqualError(t, err, test.want, name)
	}
}

func TestGateCheck(t *testing.T) {
	t.Parallel()
	good := escalation.GateAnswer{GateID: "gate-1", Action: escalation.GateFix, Actor: "anna", Guidance: strings.Repeat("ä", 10_000)}
	asked := openGate(everyAction...)
	require.NoError(t, asked.Check(good))
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(*escalation.Gate, *escalation.GateAnswer)
		want   string
	}{
		"no gate":         {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.GateID = " " }, "gate_id is empty: name the gate that you answer"},
		"another gate":    {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.GateID = "gate-2" }, `gate "gate-2" is not the one that is asked: it is gate-1`},
		"unknown action":  {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.Action = "go" }, `action "go" is unknown: it must be continue_session, fix, recheck, override or abort`},
		"a letter":        {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.Action = "f" }, `action "f" is unknown: it must be continue_session, fix, recheck, override or abort`},
		"no actor":        {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.Actor = "\t" }, "actor is empty: say who you are"},
		"a long actor":    {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.Actor = strings.Repeat("ä", 201) }, "actor has 201 characters, and at most 200 are allowed"},
		"a control actor": {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.Actor = "a\x1b[2J" }, "actor has characters that cannot be printed: give a plain name"},
		"a hidden actor":  {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.Actor = "an\u200bna" }, "actor has characters that cannot be printed: give a plain name"},
		"a turned actor":  {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.Actor = "\u202eanna" }, "actor has characters that cannot be printed: give a plain name"},
		"long guidance":   {func(_ *escalation.Gate, a *escalation.GateAnswer) { a.Guidance += "ä" }, "guidance has 10001 characters, and at most 10000 are allowed"},
		"ineligible": {func(g *escalation.Gate, a *escalation.GateAnswer) {
			*g, a.Action = openGate(everyAction[1:]...), escalation.GateContinue
		}, "gate-1 does not offer to continue: the transcript is gone"},
		"listed, but without its session": {func(g *escalation.Gate, a *escalation.GateAnswer) {
			g.Continuation, a.Action = nil, escalation.GateContinue
		}, "gate-1 does not offer to continue: choose c (continue), f (fix), o (override), q (abort)"},
		"answered": {func(g *escalation.Gate, _ *escalation.GateAnswer) {
			g.Answer = &escalation.GateClosing{Action: escalation.GateAbort, Actor: "ben", At: at}
		}, "gate-1 is closed: ben answered abort at Mar 4, 05:06 UTC"},
		"expired": {func(g *escalation.Gate, _ *escalation.GateAnswer) {
			g.Answer = &escalation.GateClosing{Action: escalation.GateFix, At: at}
		}, "gate-1 is closed: nobody answered until Mar 4, 05:06 UTC, so it was fix"},
		"escalated": {func(g *escalation.Gate, _ *escalation.GateAnswer) {
			g.Answer = &escalation.GateClosing{At: at, ToTier: 3}
		}, "gate-1 is closed: a person asked for tier 3 at Mar 4, 05:06 UTC"},
	} {
		gate, answer := openGate(everyAction...), good
		test.change(&gate, &answer)
		require.EqualError(t, gate.Check(answer), test.want, name)
	}
}

func TestGatePolicySaysWhoMayAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy        escalation.GatePolicy
		actor, wanted string
		verified      bool
	}{
		"everybody":         {escalation.GatePolicy{}, "anna", "", false},
		"an approver":       {escalation.GatePolicy{Approvers: []string{"Ben", "Anna"}}, "anna ", "", false},
		"no approver":       {escalation.GatePolicy{Approvers: []string{"ben"}}, "anna", "anna may not answer: CLAUDEOPS_GATE_APPROVERS does not list that name", false},
		"somebody else":     {escalation.GatePolicy{FourEyes: true}, "ben", "", false},
		"the starter":       {escalation.GatePolicy{FourEyes: true}, "ANNA", "ANNA may not answer: whoever starts a chain cannot answer at its gates (CLAUDEOPS_GATE_FOUR_EYES)", false},
		"both, the starter": {escalation.GatePolicy{FourEyes: true, Approvers: []string{"anna"}}, "anna", "anna may not answer: whoever starts a chain cannot answer at its gates (CLAUDEOPS_GATE_FOUR_EYES)", false},
		"who merely says an approver's name": {
			escalation.GatePolicy{RequireVerified: true, Approvers: []string{"ben"}},
			"ben",
			"ben may not answer here: answers need a login, so open the gate in the pages of `claudeops web` or `claudeops up` " +
				"(CLAUDEOPS_GATE_REQUIRE_VERIFIED)", false,
		},
		"who is logged in as an approver": {escalation.GatePolicy{RequireVerified: true, Approvers: []string{"ben"}}, "ben", "", true},
		"who is logged in as another":     {escalation.GatePolicy{RequireVerified: true, Approvers: []string{"ben"}}, "eve", "eve may not answer: CLAUDEOPS_GATE_APPROVERS does not list that name", true},
		"the starter, logged in":          {escalation.GatePolicy{RequireVerified: true, FourEyes: true}, "anna", "anna may not answer: whoever starts a chain cannot answer at its gates (CLAUDEOPS_GATE_FOUR_EYES)", true},
	} {
		err := test.policy.CheckMayAnswer(escalation.GateAnswer{Actor: test.actor, Verified: test.verified}, "anna")
		if test.wanted == "" {
			require.NoError(t, err, name)
		} else {
			require.EqualError(t, err, test.wanted, name)
		}
	}
}
