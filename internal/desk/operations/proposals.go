package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/escalation/memory"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/workflows"
)

// Actor is the person who has something done.
type Actor struct {
	Name string
	// Verified reports that the person has logged in under this name. Without it, the name is only what the client
	// says.
	Verified bool
	// May returns an error if the person may not have a proposal carried out; nil if the person may have all of them
	// carried out.
	May func(escalation.Proposal) error
}

const (
	// confirmTimeout limits the time in which Confirm carries out a proposal, also if the client has left.
	confirmTimeout = time.Minute
	// settleTimeout limits the time in which Confirm records what became of it.
	settleTimeout = 15 * time.Second
)

// Confirm carries out a proposal of a turn, in the name of the person who confirms it, and returns a sentence that says
// what was done. The number of the proposal counts from 1. The error is KindConflict if somebody has confirmed the
// proposal before, or if what it is about has changed since the reply; then nothing was done.
func (c Conversations) Confirm(ctx context.Context, name string, turn, number int, actor Actor) (string, error) {
	if err := escalation.CheckActor(actor.Name); err != nil {
		return "", Invalid(err)
	}
	records, err := c.recordsOf(ctx, name)
	if err != nil {
		return "", err
	}
	record, err := c.turnIn(ctx, records, name, turn)
	if err != nil {
		return "", err
	}
	if record.State != escalation.TalkAnswered || number < 1 || number > len(record.Proposals) {
		return "", withKind(KindNotFound, fmt.Errorf("turn %d has no proposal %d", turn, number))
	}
	proposal := record.Proposals[number-1]
	if err := proposal.Validate(); err != nil {
		return "", Invalid(err)
	}
	if actor.May != nil {
		if err := actor.May(proposal); err != nil {
			return "", err
		}
	}
	if err := c.checkUnchanged(ctx, record, proposal); err != nil {
		return "", err
	}
	// From here on, a client that leaves must not leave a confirmation behind of which nobody knows what became.
	lasting := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(lasting, confirmTimeout)
	defer cancel()
	now, err := records.Now(ctx, c.Clock())
	if err != nil {
		return "", err
	}
	confirmation := escalation.Confirmation{
		Proposal: number, Actor: c.maskInput(actor.Name), At: now.UTC().Truncate(time.Millisecond),
	}
	err = records.ConfirmProposal(ctx, record.ConversationID, turn, confirmation)
	if errors.Is(err, store.ErrConflict) {
		return "", confirmedBefore(record, number)
	}
	if err != nil {
		return "", err
	}
	result, err := c.carryOut(ctx, record, number, actor)
	// If this fails, the confirmation stays without a result, and cannot be repeated: what it was about may have been
	// done.
	ctx, cancel = context.WithTimeout(lasting, settleTimeout)
	defer cancel()
	return result, errors.Join(err, records.SettleConfirmation(ctx, record.ConversationID, turn, number, result))
}

// confirmedBefore returns the error for a proposal that somebody has confirmed before.
func confirmedBefore(record escalation.TalkTurn, number int) error {
	text := fmt.Sprintf("proposal %d of turn %d was confirmed before", number, record.Turn)
	at := slices.IndexFunc(record.Confirmed, func(c escalation.Confirmation) bool { return c.Proposal == number })
	if at >= 0 {
		text = fmt.Sprintf("%s, by %s: %s", text, line(record.Confirmed[at].Actor, 200),
			line(record.Confirmed[at].Result, 300))
	}
	return withKind(KindConflict, errors.New(text))
}

// changedSince returns an error of KindConflict.
func changedSince(format string, args ...any) error {
	return withKind(KindConflict, fmt.Errorf(format, args...))
}

// checkUnchanged returns an error if what the proposal is about has changed since its session was told of it. The
// session may have looked later; what it saw then is recorded nowhere.
func (c Conversations) checkUnchanged(
	ctx context.Context, record escalation.TalkTurn, proposal escalation.Proposal,
) error {
	seen := record.SeenAt
	if seen.IsZero() {
		seen = record.ReceivedAt
	}
	switch proposal.Kind {
	case escalation.ProposeChain:
		return nil
	case escalation.ProposeEscalate:
		now, err := Chains(c).Get(ctx, proposal.ChainID)
		if err != nil {
			return err
		}
		return chainSince(seen, now, proposal)
	case escalation.ProposeAnswer:
		gate, err := Gates(c).Get(ctx, proposal.ChainID)
		if errors.Is(err, ErrNoGate) {
			return changedSince("%s of chain %s is closed", line(proposal.GateID, 100), printableID(proposal.ChainID))
		}
		if err != nil {
			return err
		}
		return gateSince(seen, gate.ID, gate.OpenedAt, proposal)
	case escalation.ProposeClose:
		incident, err := Incidents(c).Get(ctx, proposal.IncidentID)
		if err != nil {
			return err
		}
		return incidentSince(seen, incident.Incident)
	case escalation.ProposeMemory:
		now, err := Memories(c).Get(ctx, proposal.MemoryID)
		if err == nil && (now.Status != memory.StatusCandidate || now.Proposal() != *proposal.Memory) {
			return changedSince("%s has been decided or changed since: look at it first", line(proposal.MemoryID, 60))
		}
		return err
	}
	return Invalid(fmt.Errorf("a proposal of kind %q cannot be carried out", line(string(proposal.Kind), 60)))
}

// chainSince returns an error if a chain has gone on since a time, or is where a proposal would send it.
func chainSince(seen time.Time, now Snapshot, proposal escalation.Proposal) error {
	last := now.Chain.Last()
	switch {
	case !now.Live || now.Chain.Outcome != "":
		return changedSince("chain %s has ended since", printableID(proposal.ChainID))
	case now.Chain.Tier() >= proposal.ToTier, last != nil && last.StartedAt.After(seen):
		return changedSince("chain %s has gone on since, and is at %s: look at it first",
			printableID(proposal.ChainID), now.Chain.Tier())
	}
	return nil
}

// gateSince returns an error if the gate of a chain is another one than that of a proposal, or has opened since a time.
func gateSince(seen time.Time, id string, openedAt time.Time, proposal escalation.Proposal) error {
	switch {
	case id != proposal.GateID:
		return changedSince("chain %s waits at another gate by now, %s: look at it first",
			printableID(proposal.ChainID), line(id, 100))
	case openedAt.After(seen):
		return changedSince("%s of chain %s has opened since: look at it first", line(id, 100),
			printableID(proposal.ChainID))
	}
	return nil
}

// incidentSince returns an error if an incident is resolved, or has changed since a time.
func incidentSince(seen time.Time, incident escalation.Incident) error {
	switch {
	case !incident.ResolvedAt.IsZero():
		return changedSince("%s is resolved already", incident.ID)
	case incident.ReturnedAt.After(seen), incident.WorseAt.After(seen):
		return changedSince("%s has come back or become worse since: look at it first", incident.ID)
	}
	return nil
}

// carryOut does what a proposal says.
func (c Conversations) carryOut(
	ctx context.Context, record escalation.TalkTurn, number int, actor Actor,
) (string, error) {
	proposal := record.Proposals[number-1]
	switch proposal.Kind {
	case escalation.ProposeChain:
		id := fmt.Sprintf("chain-%s-%d-%d", record.ConversationID, record.Turn, number)
		started, err := Chains(c).Start(ctx, id, workflows.ChainInput{
			Trigger: escalation.TriggerManual, Prompt: proposal.Prompt, Services: proposal.Services,
			Actor: actor.Name, Verified: actor.Verified,
		})
		return outcomeOf(err, "started chain %s", started.ChainID)
	case escalation.ProposeEscalate:
		err := Chains(c).Escalate(ctx, proposal.ChainID, workflows.EscalateSignal{
			ToTier: proposal.ToTier, Guidance: proposal.Guidance, Actor: actor.Name, Verified: actor.Verified,
			Reason: "confirmed a proposal in " + record.ConversationID,
		})
		return outcomeOf(err, "asked chain %s for %s", printableID(proposal.ChainID), proposal.ToTier)
	case escalation.ProposeAnswer:
		resolution, err := Gates(c).Answer(ctx, proposal.ChainID, escalation.GateAnswer{
			GateID: proposal.GateID, Action: proposal.Action, Guidance: proposal.Guidance, Actor: actor.Name,
			Verified: actor.Verified,
		})
		return outcomeOf(err, "answered %s with %s: %s", line(proposal.GateID, 100), proposal.Action,
			line(resolution.Next, 300))
	case escalation.ProposeClose:
		_, err := Incidents(c).Close(ctx, proposal.IncidentID, store.IncidentClosing{
			Actor: actor.Name, Verified: actor.Verified, Reason: proposal.Reason,
		})
		return outcomeOf(err, "closed %s", proposal.IncidentID)
	case escalation.ProposeMemory:
		_, err := Memories(c).Confirm(ctx, SeenMemory{Given: proposal.MemoryID}, actor.Name)
		return outcomeOf(err, "agents are told of %s from now on", line(proposal.MemoryID, 60))
	}
	return "", nil
}

// outcomeOf returns a sentence that says what was done; empty if it failed.
func outcomeOf(err error, format string, args ...any) (string, error) {
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(format, args...), nil
}
