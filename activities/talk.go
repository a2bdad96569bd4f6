package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/prompts"
)

// MemoryProposer records what replies propose to remember. Nothing of it counts before a person confirms it, or another
// incident shows the same.
type MemoryProposer interface {
	// ProposeMemories records proposals of a session. A repetition for the same session records nothing new.
	ProposeMemories(ctx context.Context, source memory.Source, proposals []escalation.MemoryProposal) ([]memory.Memory,
		error)
}

// Talker holds what sessions of conversations need in addition to what sessions of chains need.
type Talker struct {
	Store TalkKeeper
	// Proposals records proposed memories; nil if nothing is remembered.
	Proposals MemoryProposer
	Persona   prompts.Persona
	// Project is the agents' default working directory.
	Project string
	// Zone is the time zone of the host; nil means UTC.
	Zone *time.Location
	// IsUnknown reports whether an error of Store means that the record does not exist.
	IsUnknown func(error) bool
}

// RunTalkInput describes one session of a conversation.
type RunTalkInput struct {
	ConversationID string            `json:"conversation_id"`
	FirstRunID     string            `json:"first_run_id,omitempty"`
	Turn           int               `json:"turn"`
	SessionID      string            `json:"session_id"`
	Policy         escalation.Policy `json:"policy"`
	// ParentSessionID is the conversation that the session forks; empty for a new conversation.
	ParentSessionID string `json:"parent_session_id,omitempty"`
	// About is the chain to which the parent belongs; empty if the parent is the turn before.
	About string `json:"about,omitempty"`
	// Forgets keeps the earlier turns from a new conversation, because the provider refuses them.
	Forgets bool `json:"forgets,omitempty"`
	// BudgetUSD limits the spending of the session over all its attempts, in US dollars; 0 for the limit in the policy.
	BudgetUSD float64 `json:"budget_usd,omitempty"`
}

// session names the session in the records.
func (i RunTalkInput) session() escalation.TalkSession {
	return escalation.TalkSession{ConversationID: i.ConversationID, Turn: i.Turn, SessionID: i.SessionID}
}

// RunTalkResult is the result of RunTalk. The reply itself is in the records only.
type RunTalkResult struct {
	Report escalation.Report `json:"report"`
	// Replied reports whether the reply is stored.
	Replied bool `json:"replied,omitempty"`
	// Unarchived reports that the conversation could not be archived.
	Unarchived bool `json:"unarchived,omitempty"`
	// Recalled is the number of earlier turns that a new conversation has learned of.
	Recalled int `json:"recalled,omitempty"`
	// EndedAt is the end of the session by Temporal's clock.
	EndedAt time.Time `json:"ended_at,omitzero"`
}

// RunTalk runs the session that answers the message of a turn, and stores the reply. If the session of an earlier
// attempt has stored its reply already, RunTalk runs nothing. If that session has a conversation without a reply,
// RunTalk continues that conversation. The errors are those of RunTier.
func (t *Tiers) RunTalk(ctx context.Context, input RunTalkInput) (RunTalkResult, error) {
	talk := &talking{Tiers: t, input: input}
	kept, err := t.Talk.Store.KeptReport(ctx, input.session())
	if err != nil {
		return RunTalkResult{}, err
	}
	if kept != nil {
		return RunTalkResult{Report: *kept, Replied: true, EndedAt: stopwatch(ctx)()}, nil
	}
	system, err := t.Prompts.TalkSystem(t.Talk.Persona, t.permissions(escalation.TierObserve, false))
	if err != nil {
		return RunTalkResult{}, unjudged(fmt.Errorf("%w of a conversation: %w", errPrompt, err),
			pastAttempts(ctx).Spent, 0, 1)
	}
	session, err := t.runSession(ctx, role{
		name: "a conversation", purpose: escalation.PurposeTalk, heartbeat: input.Policy.HeartbeatInterval(),
		budgetUSD: input.BudgetUSD,
		run: AgentRun{
			ChainID: input.ConversationID, FirstRunID: input.FirstRunID, Tier: escalation.TierObserve,
			Policy: input.Policy.For(escalation.TierObserve), SessionID: input.SessionID, Resume: input.ParentSessionID,
			SystemPrompt: system, Schema: escalation.TalkSchema, TextField: escalation.TalkReplyField,
		},
		prompt: talk.opening, goOn: talk.goOn, late: true, concluded: talk.concluded,
		output: "reply", decode: talk.decode, repair: t.Prompts.TalkRepair,
	})
	if err != nil {
		return RunTalkResult{}, err
	}
	result := RunTalkResult{
		Report: session.Report, Recalled: talk.recalled, Unarchived: session.Unarchived,
		EndedAt: session.at,
	}
	if talk.reply != nil {
		result.Report.Status, result.Report.Ending, result.Replied = escalation.SessionCompleted,
			escalation.EndingNone, true
		talk.propose(ctx, result.EndedAt)
		err = t.Talk.Store.KeepReply(ctx, input.session(), *talk.reply, result.Report)
		if t.Talk.IsUnknown != nil && t.Talk.IsUnknown(err) {
			err = permanent(ErrorTypeRecords, err) // the turn has ended: the agent must not run again
		}
	}
	return result, err
}

// talking is one execution of RunTalk.
type talking struct {
	*Tiers

	input RunTalkInput
	// reply is the valid reply; nil if there is none yet.
	reply    *escalation.TalkReply
	recalled int
}

// concluded returns the report of a session whose earlier process has given its reply and died before it could report
// it, so that nobody pays for the reply twice. If there is none, or if the guard has not allowed all of the session's
// calls, it returns nil. The report has only what the argument spent lacks.
func (t *talking) concluded(ctx context.Context, spent escalation.Report) (*AgentReport, error) {
	found, err := t.Agent.Concluded(ctx, t.input.SessionID, t.input.ParentSessionID)
	if err != nil || found == nil {
		return nil, err
	}
	allowed, err := t.Talk.Store.AllowedCalls(ctx, t.input.SessionID)
	if err != nil {
		return nil, err
	}
	unasked := func(call string) bool { return !slices.Contains(allowed, call) }
	if slices.ContainsFunc(found.Calls, unasked) || found.Output == nil {
		return nil, nil
	}
	if err := t.decode(found.Output); err != nil {
		return nil, nil //nolint:nilerr // the agent is asked again
	}
	report := *found
	report.Interrupted = true
	report.Turns = max(report.Turns-spent.Turns, 0)
	report.CostUSD = max(report.CostUSD-spent.CostUSD, 0)
	limit := cmp.Or(t.input.BudgetUSD, t.input.Policy.For(escalation.TierObserve).BudgetUSD)
	if limit > 0 { // an agent could have written more
		report.CostUSD = min(report.CostUSD, max(limit-spent.CostUSD, 0))
	}
	report.Tokens = report.Tokens.Beyond(spent.Tokens)
	return &report, nil
}

// inBackground begins to make a value, and returns a function that waits for it. If produce panics, that function does.
func inBackground[T any](produce func() (T, error)) (wait func() (T, error)) {
	var value T
	var err error
	var panicked any
	done := make(chan struct{})
	go func() {
		defer func() {
			panicked = recover()
			close(done)
		}()
		value, err = produce()
	}()
	return func() (T, error) {
		<-done
		if panicked != nil {
			panic(panicked)
		}
		return value, err
	}
}

// turn returns the turn that the session answers.
func (t *talking) turn(ctx context.Context) (escalation.TalkTurn, error) {
	turn, err := t.Talk.Store.TalkTurn(ctx, t.input.ConversationID, t.input.Turn)
	return turn, t.explainUnknown(err)
}

// goOn returns the prompt that continues an interrupted turn, which must still be open.
func (t *talking) goOn(ctx context.Context, cutOff prompts.Interruption) (string, error) {
	if _, err := t.turn(ctx); err != nil {
		return "", err
	}
	return t.interrupted(&cutOff)
}

// interrupted says what an earlier process may have left half done; it returns "" if there was none.
func (t *talking) interrupted(cutOff *prompts.Interruption) (string, error) {
	if cutOff == nil {
		return "", nil
	}
	text, err := t.Prompts.TalkInterrupted(*cutOff)
	if err != nil {
		return "", fmt.Errorf("%w of an interrupted turn: %w", errPrompt, err)
	}
	return text, nil
}

// opening returns the prompt with the context, and records the context.
func (t *talking) opening(ctx context.Context, cutOff *prompts.Interruption) (string, error) {
	turn, err := t.turn(ctx)
	if err != nil {
		return "", err
	}
	before, err := t.interrupted(cutOff)
	if err != nil {
		return "", err
	}
	at, cold := stopwatch(ctx)(), t.input.ParentSessionID == ""
	facts, err := t.Talk.Store.TalkFacts(ctx, t.input.ConversationID, at, cold)
	if err != nil {
		return "", err
	}
	if facts.Recalled = recalledFor(turn, facts.Recalled); t.input.Forgets {
		facts.Recalled = nil
	}
	t.recalled = len(facts.Recalled)
	zone := t.Talk.Zone
	if zone == nil {
		zone = time.UTC
	}
	text, err := t.Prompts.TalkContext(prompts.Talk{
		Persona: t.Talk.Persona, Actor: turn.Actor, At: at.In(zone), Host: t.Host, Project: t.Talk.Project,
		Facts: facts, Memories: t.recall(ctx, turn.Text, at), Cold: cold, About: t.input.About,
	})
	if err != nil {
		return "", fmt.Errorf("%w of a conversation: %w", errPrompt, err)
	}
	if err := t.Talk.Store.BeginTurn(ctx, t.input.session(), text, at); err != nil {
		return "", t.explainUnknown(err)
	}
	if before != "" {
		text = before + "\n\n" + text
	}
	return text + "\n\n" + turn.Text, nil
}

// explainUnknown makes the error of a turn that is not recorded as open permanent. It returns any other error
// unchanged.
func (t *talking) explainUnknown(err error) error {
	if t.Talk.IsUnknown != nil && t.Talk.IsUnknown(err) {
		return fmt.Errorf("%w: %w: %w", errPrompt, errNoMessage, err)
	}
	return err
}

// recalledFor returns those of the recalled turns that a turn can follow. A message that goes back to an earlier answer
// knows nothing of later turns.
func recalledFor(turn escalation.TalkTurn, recalled []escalation.TalkTurn) []escalation.TalkTurn {
	if turn.After == nil {
		return recalled
	}
	return slices.DeleteFunc(recalled, func(earlier escalation.TalkTurn) bool { return earlier.Turn > *turn.After })
}

// recall returns the text about the memories that match a message. A conversation works without them, so a failure is
// only logged.
func (t *talking) recall(ctx context.Context, message string, at time.Time) string {
	if t.Memories == nil {
		return ""
	}
	brief, err := t.Memories.RecallMemories(ctx, memory.Recall{
		ChainID: t.input.ConversationID, FirstRunID: t.input.FirstRunID, SessionID: t.input.SessionID,
		Text: message, Matching: true, ParentSessionID: t.input.ParentSessionID, At: at,
	})
	if err != nil {
		activity.GetLogger(ctx).Warn("a conversation goes on without memories, because they cannot be read", "error",
			err)
	}
	return brief.Markdown
}

// propose records what the reply proposes to remember, and adds a proposal for each memory that waits for a person. The
// reply can come from the output of commands, of this turn or of an earlier one, so it has the least trust. A failure
// is only logged.
func (t *talking) propose(ctx context.Context, at time.Time) {
	if t.Talk.Proposals == nil || len(t.reply.Memories) == 0 {
		return
	}
	source := memory.Source{
		Trust: memory.TrustOutput, At: at, ChainID: t.input.ConversationID,
		SessionID: t.input.SessionID,
	}
	known, err := t.Talk.Proposals.ProposeMemories(ctx, source, t.reply.Memories)
	if err != nil {
		activity.GetLogger(ctx).Warn("what a reply proposes to remember was not recorded", "error", err)
	}
	for _, one := range known {
		if one.Status == memory.StatusCandidate {
			said := one.Proposal()
			t.reply.Proposals = append(t.reply.Proposals, escalation.Proposal{
				Kind: escalation.ProposeMemory, Why: "agents are told of it only if you confirm it", MemoryID: one.ID,
				Memory: &said,
			})
		}
	}
}

// decode keeps the reply. It returns an error if the reply is invalid.
func (t *talking) decode(output json.RawMessage) error {
	reply, err := escalation.DecodeTalkReply(output)
	if err == nil {
		t.reply = &reply
	}
	return err
}
