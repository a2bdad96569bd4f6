package escalation

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plaintext"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestTalkMessage(t *testing.T) {
	t.Parallel()
	valid := TalkMessage{MessageID: "m-1", Text: "how is jellyfin?", Actor: "ada"}
	require.NoError(t, valid.Validate())
	for name, tt := range map[string]struct {
		change func(*TalkMessage)
		want   string
	}{
		"no id":         {func(m *TalkMessage) { m.MessageID = " " }, "message_id is empty"},
		"long id":       {func(m *TalkMessage) { m.MessageID = strings.Repeat("x", MaxMessageID+1) }, "at most 100"},
		"id of 2 lines": {func(m *TalkMessage) { m.MessageID = "a\nb" }, "on one line"},
		"no text":       {func(m *TalkMessage) { m.Text = "\n\t" }, "text is empty"},
		"long text":     {func(m *TalkMessage) { m.Text = strings.Repeat("ä", MaxTalkText+1) }, "text has 16001 characters"},
		"nobody":        {func(m *TalkMessage) { m.Actor = "" }, "actor is empty"},
		"hidden actor":  {func(m *TalkMessage) { m.Actor = "ada\u202e" }, "cannot be printed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := valid
			tt.change(&message)
			require.ErrorContains(t, message.Validate(), tt.want)
		})
	}
}

func TestConversationName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ada", "ops-team", "A.b_c-1"} {
		require.NoError(t, CheckConversationName(name))
	}
	for _, name := range []string{"", "-x", ".x", "a b", "a/b", "a\x1b", strings.Repeat("x", MaxConversationName+1)} {
		require.Error(t, CheckConversationName(name), "%q", name)
	}
	names := map[string]string{}
	long := strings.Repeat("x", MaxConversationName)
	for _, text := range []string{
		"ada", "Ada", "josé", "josè", "李雷", "韩梅梅", "", "-", "ada:1", "ada-1", "ada.1", "ada 1", "about-x", "chat-x", "person-x", long, long + "1", long + "2",
		PersonalConversation("josé"), PersonalConversation(PersonalConversation("josé")),
	} {
		for kind, name := range map[string]string{"person ": PersonalConversation(text), "chain ": AboutChain(text)} {
			require.NoError(t, CheckConversationName(name), "%q", text)
			require.Empty(t, names[name], "%s%q has the same name: %s", kind, text, name)
			names[name] = kind + text
			require.Equal(t, kind == "chain ", IsAboutChain(name), name)
		}
	}
	require.Empty(t, names[AboutChain(strings.TrimPrefix(AboutChain("chain:1"), aboutPrefix))], "an ID that looks like a name with a checksum")
	require.Equal(t, "ada", PersonalConversation("ada"))
	require.Equal(t, "person-jos-d994e1d001886fe5", PersonalConversation("josé")[:27])
	require.Equal(t, "about-chain-1", AboutChain("chain-1"))
	require.True(t, IsConversation("conversation-ada"))
	require.False(t, IsConversation("chain-conversation-ada"))
}

func TestDecodeTalkReply(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw, problem string
	}{
		"plain":           {`{"reply":"All is well."}`, ""},
		"empty":           {`{"reply":" "}`, "reply is empty"},
		"too long":        {`{"reply":"` + strings.Repeat("x", MaxTalkReply+1) + `"}`, "reply has 32001 characters"},
		"unknown field":   {`{"reply":"x","run":"rm"}`, "unknown field"},
		"two documents":   {`{"reply":"x"} {}`, "something follows"},
		"chain":           {`{"reply":"x","proposals":[{"kind":"start_chain","why":"w","services":["jellyfin"],"prompt":"look"}]}`, ""},
		"unknown kind":    {`{"reply":"x","proposals":[{"kind":"run","why":"w"}]}`, "kind is"},
		"escalate":        {`{"reply":"x","proposals":[{"kind":"escalate","why":"w","chain_id":"chain-1","to_tier":3}]}`, ""},
		"no tier":         {`{"reply":"x","proposals":[{"kind":"escalate","why":"w","chain_id":"chain-1"}]}`, "to_tier is 0"},
		"no chain":        {`{"reply":"x","proposals":[{"kind":"escalate","why":"w","to_tier":2}]}`, "chain_id is"},
		"a conversation":  {`{"reply":"x","proposals":[{"kind":"escalate","why":"w","to_tier":2,"chain_id":"conversation-bob"}]}`, "chain_id is"},
		"answer":          {`{"reply":"x","proposals":[{"kind":"answer_gate","why":"w","chain_id":"c","gate_id":"gate-1","action":"fix"}]}`, ""},
		"no gate":         {`{"reply":"x","proposals":[{"kind":"answer_gate","why":"w","chain_id":"c","action":"fix"}]}`, "gate_id is"},
		"recheck":         {`{"reply":"x","proposals":[{"kind":"answer_gate","why":"w","chain_id":"c","gate_id":"g","action":"recheck"}]}`, "action is"},
		"close":           {`{"reply":"x","proposals":[{"kind":"close_incident","why":"w","incident_id":"incident-7","reason":"gone"}]}`, ""},
		"no incident":     {`{"reply":"x","proposals":[{"kind":"close_incident","why":"w","incident_id":"7; rm"}]}`, "incident_id is"},
		"six proposals":   {`{"reply":"x","proposals":[` + strings.TrimSuffix(strings.Repeat(`{"kind":"start_chain","why":"w"},`, 6), ",") + `]}`, "proposals has 6"},
		"memory":          {`{"reply":"x","memories":[{"kind":"correction","text":"it sleeps on Sundays","subject":"sleep","service":"nas"}]}`, ""},
		"memory of state": {`{"reply":"x","memories":[{"kind":"state","text":"all is well","subject":"x","service":"nas"}]}`, "memories[0].kind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply, err := DecodeTalkReply([]byte(tt.raw))
			if tt.problem == "" {
				require.NoError(t, err)
				require.NotEmpty(t, reply.Reply)
				return
			}
			require.ErrorIs(t, err, ErrInvalidReply)
			require.ErrorContains(t, err, tt.problem)
		})
	}
}

// TestTalkSchemaAgrees compares the limits in the schema with those of DecodeTalkReply.
func TestTalkSchemaAgrees(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties struct {
			Reply               struct{ MaxLength int }
			Proposals, Memories struct {
				MaxItems int
				Items    struct {
					Properties map[string]struct{ MaxLength int }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(TalkSchema), &schema))
	require.Equal(t, MaxTalkReply, schema.Properties.Reply.MaxLength)
	require.Equal(t, MaxProposals, schema.Properties.Proposals.MaxItems)
	require.Equal(t, MaxMemories, schema.Properties.Memories.MaxItems)
	require.Equal(t, MaxMemoryText, schema.Properties.Memories.Items.Properties["text"].MaxLength)
	fields := schema.Properties.Proposals.Items.Properties
	require.Equal(t, MaxClosingReason, fields["reason"].MaxLength)
	require.Equal(t, maxProposedID, fields["chain_id"].MaxLength)
	require.Len(t, fields, 11)
}

func TestChooseTalkContinuity(t *testing.T) {
	t.Parallel()
	good := &Session{SessionID: "s", Report: Report{ReportedSessionID: "s", ContextTokens: 100}}
	for name, tt := range map[string]struct {
		input ContinuityInput
		want  ContinuityChoice
		lost  ContinuityReason
	}{
		"first":      {ContinuityInput{}, ContinuityChoice{ContinuityFresh, ReasonFirstTier}, ""},
		"continues":  {ContinuityInput{Parent: good, Window: 1_000, Threshold: 0.8}, ContinuityChoice{ContinuityResume, ReasonParentSession}, ""},
		"configured": {ContinuityInput{Parent: good, Mode: ContinuityHandoffOnly}, ContinuityChoice{ContinuityResume, ReasonParentSession}, ""},
		"no id":      {ContinuityInput{Parent: &Session{}}, ContinuityChoice{ContinuityFresh, ReasonSessionIDMissing}, ReasonSessionIDMissing},
		"too large":  {ContinuityInput{Parent: good, Window: 110, Threshold: 0.8}, ContinuityChoice{ContinuityFresh, ReasonContextPressure}, ReasonContextPressure},
		"gone":       {ContinuityInput{Parent: good.Disown(Session{Report: Report{Status: SessionTranscriptLost}})}, ContinuityChoice{ContinuityFresh, ReasonTranscriptLost}, ReasonTranscriptLost},
		"unreadable": {ContinuityInput{Parent: good.Disown(Session{})}, ContinuityChoice{ContinuityFresh, ReasonResumeFailed}, ReasonResumeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			choice := ChooseTalkContinuity(tt.input)
			require.Equal(t, tt.want, choice)
			require.Equal(t, tt.lost, choice.LostBy())
		})
	}
}

// TestTalkSentences compares what a person gets for each way in which a turn can go with a golden file.
func TestTalkSentences(t *testing.T) {
	t.Parallel()
	ended := func(ending Ending, problem string) Session {
		status := SessionFailed
		if ending == EndingNoResult {
			status = SessionCompleted
		}
		return Session{BudgetUSD: 1, Continuity: ContinuityResume, Report: Report{
			Status: status, Error: problem, Attempts: 3, Ending: ending, LimitedUntil: time.Unix(1_895_809_600, 0),
		}}
	}
	session := func(status SessionStatus, problem string) Session {
		return Session{BudgetUSD: 1, Continuity: ContinuityResume, Report: Report{Status: status, Error: problem, Attempts: 3}}
	}
	anew := func(s Session) Session {
		s.Continuity = ContinuityFresh
		return s
	}
	fresh := func(status SessionStatus, problem string) Session { return anew(session(status, problem)) }
	refusal := Admission{Rule: RuleDayBudget, Reason: "tier 1 cannot start: the budget of all chains for this day (UTC) of $25.00 is spent or reserved ($24.99)"}
	reserved := refusal
	reserved.WaitUntil = time.Unix(1, 0)
	limit := TierPolicy{Timeout: Duration(15 * time.Minute), MaxTurns: 60, BudgetUSD: 1}
	var text strings.Builder
	for _, tt := range []struct {
		name  string
		input TalkInput
	}{
		{"answered", TalkInput{Replied: true}},
		{"answered although it was stopped late", TalkInput{Replied: true, StoppedBy: "ada"}},
		{"answered anew, no session id", TalkInput{Replied: true, Lost: ReasonSessionIDMissing, Recalled: 5}},
		{"answered anew, transcript gone", TalkInput{Replied: true, Lost: ReasonTranscriptLost, Again: true, Recalled: 1}},
		{"answered anew, of another host", TalkInput{
			Replied: true, Lost: ReasonTranscriptLost, LostHost: "nas-1", Again: true, Recalled: 2, Session: Session{Report: Report{Host: "nas-2"}},
		}},
		{"answered anew, cannot load", TalkInput{Replied: true, Lost: ReasonResumeFailed, Again: true}},
		{"answered anew, too large", TalkInput{Replied: true, Lost: ReasonContextPressure, Recalled: 3}},
		{"answered, not archived", TalkInput{Replied: true, Unarchived: true}},
		{"answered anew, not archived", TalkInput{Replied: true, Lost: ReasonResumeFailed, Recalled: 1, Unarchived: true}},
		{"transcript gone", TalkInput{Session: session(SessionTranscriptLost, "gone")}},
		{"cannot load", TalkInput{Session: session(SessionResumeFailed, "broken")}},
		{"a second failure", TalkInput{Session: fresh(SessionFailed, "exit status 1"), Lost: ReasonTranscriptLost, Again: true}},
		{"a second failure, provider away", TalkInput{
			Session: anew(ended(EndingProvider, "connection refused")), Lost: ReasonResumeFailed, Again: true,
			LostBecause: "API Error: 400 messages.3: too large.",
		}},
		{"provider away", TalkInput{Session: ended(EndingProvider, "API Error: 529 overloaded.")}},
		{"login refused", TalkInput{Session: ended(EndingAccount, "401 invalid x-api-key")}},
		{"day's budget spent", TalkInput{Refusal: &refusal}},
		{"day's budget reserved", TalkInput{Refusal: &reserved}},
		{"another refusal", TalkInput{Refusal: &Admission{Rule: RuleChainBudget, Reason: "the chain's budget is spent."}}},
		{"turn's budget spent", TalkInput{Session: session(SessionBudgetExhausted, ""), Limit: limit}},
		{"guard", TalkInput{Session: ended(EndingGuard, "the CLI made calls without asking")}},
		{"timed out", TalkInput{Session: session(SessionTimedOut, "killed"), Limit: limit}},
		{"no reply", TalkInput{Session: ended(EndingNoResult, "")}},
		{"the account's limit", TalkInput{Session: ended(EndingLimited, "You've hit your limit")}},
		{"the account's limit, known before", TalkInput{Refusal: &Admission{Rule: RuleAccountLimit, Reason: limitReason(time.Unix(1_895_809_600, 0), "")}}},
		{"refused by the model", TalkInput{Session: ended(EndingRefused, "the model refused, after the words “I”: API Error")}},
		{"refused by the model again", TalkInput{
			Session: anew(ended(EndingRefused, "the model refused, after the words “I”: API Error")), Lost: ReasonResumeFailed, Again: true,
		}},
		{"refused by the provider", TalkInput{Session: ended(EndingUnusable, "API Error: 400 messages.3: too large")}},
		{"answered anew, refused before", TalkInput{Replied: true, Lost: ReasonResumeFailed, LostBecause: "API Error: 400 messages.3: too large."}},
		{"refused by the provider, with the earlier turns", TalkInput{
			Session: anew(ended(EndingRequest, "API Error: 400 messages.0: too large")), Lost: ReasonResumeFailed, Again: true, Recalled: 2,
		}},
		{"refused by the provider, without them", TalkInput{
			Session: anew(ended(EndingRequest, "API Error: 400 no such model")), Lost: ReasonResumeFailed, Again: true, Forgets: true,
			LostBecause: "API Error: 400 messages.3: too large.",
		}},
		{"answered anew, without the earlier turns", TalkInput{
			Replied: true, Lost: ReasonResumeFailed, Again: true, Forgets: true, LostBecause: "API Error: 400 messages.3: too large.",
		}},
		{"wrong request", TalkInput{Session: anew(ended(EndingRequest, "API Error: 404 no such model"))}},
		{"too long", TalkInput{Session: ended(EndingTooLong, "it was cut")}},
		{"unknown", TalkInput{Session: ended(EndingUnknown, "claude failed (novelty)")}},
		{"stopped", TalkInput{Session: session(SessionStopped, ""), StoppedBy: "ada\x1b[31m"}},
		{"stopped otherwise", TalkInput{Session: session(SessionStopped, "")}},
		{"ended", TalkInput{Session: session(SessionStopped, ""), Ended: true}},
		{"failed", TalkInput{Session: session(SessionFailed, "")}},
		{"lost in a new conversation", TalkInput{Session: fresh(SessionTranscriptLost, "gone")}},
	} {
		decision := DecideTalk(tt.input)
		switch {
		case decision.Again:
			require.Empty(t, decision.State, tt.name)
			_, _ = fmt.Fprintf(&text, "%s: again (%s)%s\n\n", tt.name, decision.Lost, map[bool]string{true: " without the earlier turns"}[decision.Forgets])
			continue
		case decision.State == TalkAnswered:
			require.Empty(t, decision.Failure, tt.name)
		default:
			require.NotEmpty(t, decision.Failure, tt.name)
			require.True(t, decision.State.Final(), tt.name)
		}
		_, _ = fmt.Fprintf(&text, "%s: %s\n%s%s\n\n", tt.name, decision.State, decision.Note, decision.Failure)
	}
	golden(t, "talk-sentences.txt", text.String())
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

// TestProposalsHideNothing decodes proposals with characters that nobody sees, and describes the longest ones.
func TestProposalsHideNothing(t *testing.T) {
	t.Parallel()
	reply, err := DecodeTalkReply([]byte(`{"reply":"x","proposals":[{"kind":"start_chain","why":"w","prompt":"look\nat \u202enas\u200b\u001b[31m"}]}`))
	require.NoError(t, err)
	require.Equal(t, "look\nat nas[31m", reply.Proposals[0].Prompt)
	require.Equal(t, "start a chain, with the request “look at nas[31m”", reply.Proposals[0].Describe())
	long := func(end string) string { return strings.Repeat("x", maxTalkField-len(end)) + end }
	services := slices.Repeat([]string{strings.Repeat("s", 200)}, 20)
	longest := Proposal{Kind: ProposeChain, Services: services, Prompt: long("request"), Guidance: long("guidance"), Reason: long("reason")}
	for _, end := range []string{"request”", "guidance”", "reason”"} {
		require.Contains(t, plaintext.Cut(longest.Describe(), MaxDescription), end)
	}
}

func TestDescribeProposal(t *testing.T) {
	t.Parallel()
	for want, proposal := range map[string]Proposal{
		"start a chain for jellyfin, with the request “look at it”":  {Kind: ProposeChain, Services: []string{"jellyfin"}, Prompt: "look\nat it"},
		"ask chain chain-1 for tier 3":                               {Kind: ProposeEscalate, ChainID: "chain-1", ToTier: 3},
		"answer gate-1 of chain c with fix, with the guidance “now”": {Kind: ProposeAnswer, ChainID: "c", GateID: "gate-1", Action: GateFix, Guidance: "now\x1b"},
		"close incident-7, because “it is gone”":                     {Kind: ProposeClose, IncidentID: "incident-7", Reason: "it is gone"},
	} {
		require.Equal(t, want, proposal.Describe())
	}
}

func TestTimeOfDay(t *testing.T) {
	t.Parallel()
	for hour, want := range map[int]string{0: "late night", 4: "late night", 5: "morning", 12: "afternoon", 17: "evening", 22: "night"} {
		require.Equal(t, want, TimeOfDay(time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)))
	}
}
