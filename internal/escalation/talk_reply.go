package escalation

import (
	_ "embed" // for TalkSchema
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// TalkSchema is the JSON schema of TalkReply, as passed to the CLI. DecodeTalkReply also checks rules that a schema
// cannot express, such as the fields that a kind of proposal requires.
//
//go:embed talk_schema.json
var TalkSchema string

// TalkReplyField is the field of TalkSchema with the text for the person.
const TalkReplyField = "reply"

// TalkReply holds a session's answer in a conversation. Nothing in it takes effect by itself: a proposal takes effect
// only if a person confirms it, and a memory only if it is accepted.
type TalkReply struct {
	// Reply is the text for the person, in Markdown.
	Reply     string           `json:"reply,omitempty"`
	Proposals []Proposal       `json:"proposals,omitempty"`
	Memories  []MemoryProposal `json:"memories,omitempty"`
}

// ProposalKind says what a proposal would do.
type ProposalKind string

// The kinds of proposals.
const (
	ProposeChain    ProposalKind = "start_chain"
	ProposeEscalate ProposalKind = "escalate"
	ProposeAnswer   ProposalKind = "answer_gate"
	ProposeClose    ProposalKind = "close_incident"
	// ProposeMemory is a proposal of the supervisor, for each memory of the reply that waits for a person.
	ProposeMemory ProposalKind = "remember"
)

// Proposal is something that a session proposes, and that a person can confirm. Which fields are set depends on Kind.
type Proposal struct {
	Kind ProposalKind `json:"kind"`
	// Why says in a sentence why the session proposes it.
	Why string `json:"why,omitempty"`
	// Prompt and Services describe the chain of ProposeChain.
	Prompt   string   `json:"prompt,omitempty"`
	Services []string `json:"services,omitempty"`
	// ChainID names the chain of ProposeEscalate and ProposeAnswer.
	ChainID string `json:"chain_id,omitempty"`
	ToTier  Tier   `json:"to_tier,omitempty"`
	GateID  string `json:"gate_id,omitempty"`
	// Action is the answer at the gate.
	Action     GateAction `json:"action,omitempty"`
	Guidance   string     `json:"guidance,omitempty"`
	IncidentID string     `json:"incident_id,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	// MemoryID names the candidate of ProposeMemory, and Memory is what it says.
	MemoryID string          `json:"memory_id,omitempty"`
	Memory   *MemoryProposal `json:"memory,omitempty"`
}

// ErrInvalidReply is wrapped by all errors of DecodeTalkReply.
var ErrInvalidReply = errors.New("invalid reply")

const (
	// MaxTalkReply limits a reply, in characters.
	MaxTalkReply = 32_000
	// MaxProposals limits the proposals of a reply.
	MaxProposals = 5
	// maxTalkField limits each other text of a reply, in characters.
	maxTalkField = 2_000
	// maxReplyBytes limits the JSON of a reply.
	maxReplyBytes = 256 << 10
)

// DecodeTalkReply reads the structured output of a session in a conversation. Errors wrap ErrInvalidReply and use words
// that the model can act on.
func DecodeTalkReply(raw []byte) (TalkReply, error) {
	reply, err := DecodeOutput(raw, maxReplyBytes, ErrInvalidReply, (*TalkReply).problems)
	for i := range reply.Proposals {
		reply.Proposals[i] = reply.Proposals[i].visible()
	}
	return reply, err
}

// visible returns the proposal without the characters that no person can see, so that nothing is carried out that was
// not shown.
func (p Proposal) visible() Proposal {
	for _, text := range []*string{&p.Why, &p.Prompt, &p.Guidance, &p.Reason} {
		*text = plaintext.Block(*text)
	}
	return p
}

func (r TalkReply) problems() []string {
	var found problemList
	length := utf8.RuneCountInString(r.Reply)
	found.must(!blank(r.Reply), "reply is empty")
	found.must(length <= MaxTalkReply, "reply has %d characters, and at most %d are allowed", length, MaxTalkReply)
	found.must(len(r.Proposals) <= MaxProposals, "proposals has %d entries, and at most %d are allowed",
		len(r.Proposals), MaxProposals)
	for i, proposal := range r.Proposals {
		if err := proposal.Validate(); err != nil {
			found.must(false, "proposals[%d].%s", i, err)
		}
		own := proposal.Kind != ProposeMemory && proposal.MemoryID == "" && proposal.Memory == nil
		found.must(own, "proposals[%d] is about a memory, which belongs into memories", i)
	}
	return append(found, memoryProblems(r.Memories)...)
}

// Validate returns the first error in the proposal; nil if the proposal is valid. The error begins with the name of a
// field.
func (p Proposal) Validate() error {
	for _, text := range []struct{ name, value string }{
		{"why", p.Why}, {"prompt", p.Prompt}, {"guidance", p.Guidance}, {"reason", p.Reason},
	} {
		if utf8.RuneCountInString(text.value) > maxTalkField {
			return fmt.Errorf("%s has more than %d characters", text.name, maxTalkField)
		}
	}
	switch p.Kind {
	case ProposeChain:
		if err := CheckServices(p.Services); err != nil {
			return fmt.Errorf("services: %w", err)
		}
		return nil
	case ProposeEscalate:
		if p.ToTier != TierSafeRepair && p.ToTier != TierFullRepair {
			return fmt.Errorf("to_tier is %d, and must be 2 or 3", int(p.ToTier))
		}
		return checkProposedID("chain_id", p.ChainID)
	case ProposeAnswer:
		return p.validateAnswer()
	case ProposeClose:
		if CheckIncidentID(p.IncidentID) != nil {
			return fmt.Errorf("incident_id is %q, and must be the ID of an incident, such as incident-7",
				clipWord(p.IncidentID))
		}
		if utf8.RuneCountInString(p.Reason) > MaxClosingReason {
			return fmt.Errorf("reason has more than %d characters", MaxClosingReason)
		}
		return nil
	case ProposeMemory:
		if blank(p.MemoryID) || p.Memory == nil {
			return errors.New("memory_id names no memory")
		}
		return nil
	default:
		return fmt.Errorf("kind is %q, and must be start_chain, escalate, answer_gate or close_incident",
			clipWord(string(p.Kind)))
	}
}

// validateAnswer is Validate for an answer at a gate.
func (p Proposal) validateAnswer() error {
	if p.Action.Letter() == "" || p.Action == GateRecheck { // only a person can say that it is repaired
		return fmt.Errorf("action is %q, and must be continue_session, fix, override or abort",
			clipWord(string(p.Action)))
	}
	if err := checkProposedID("gate_id", p.GateID); err != nil {
		return err
	}
	return checkProposedID("chain_id", p.ChainID)
}

// maxProposedID limits the ID of a chain or a gate in a proposal, in bytes.
const maxProposedID = 500

func checkProposedID(name, id string) error {
	if blank(id) || len(id) > maxProposedID || !plaintext.IsLine(id) || IsConversation(id) {
		return fmt.Errorf("%s is %q, and must name what you have seen", name, clipWord(id))
	}
	return nil
}

// MaxDescription is more than the characters of any description of a valid proposal: nobody confirms what is not shown.
const MaxDescription = 20_000

// Describe says in one line what the proposal would do, with all that it would do. The line can contain words of an
// agent.
func (p Proposal) Describe() string {
	var text string
	switch p.Kind {
	case ProposeChain:
		text = "start a chain"
		if len(p.Services) > 0 {
			text += " for " + strings.Join(p.Services, ", ")
		}
		if p.Prompt != "" {
			text += fmt.Sprintf(", with the request “%s”", p.Prompt)
		}
	case ProposeEscalate:
		text = fmt.Sprintf("ask chain %s for %s", p.ChainID, p.ToTier)
	case ProposeAnswer:
		text = fmt.Sprintf("answer %s of chain %s with %s", p.GateID, p.ChainID, InWords(p.Action))
	case ProposeClose:
		text = "close " + p.IncidentID
	case ProposeMemory:
		text = fmt.Sprintf("remember for prompts “%s”", p.Memory.Text)
		if p.Memory.Service != "" {
			text += " (" + p.Memory.Service + ")"
		}
		text += fmt.Sprintf(", as a %s with the subject “%s”", p.Memory.Kind, p.Memory.Subject)
	}
	if p.Guidance != "" {
		text += fmt.Sprintf(", with the guidance “%s”", p.Guidance)
	}
	if p.Reason != "" {
		text += fmt.Sprintf(", because “%s”", p.Reason)
	}
	return plaintext.Line(text)
}
