package prompts

import (
	"fmt"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// Persona holds the operator's texts about who answers in conversations.
type Persona struct {
	// Identity says who answers, Soul how to behave, and User whom to expect.
	Identity, Soul, User string
}

// maxReminder limits the beginning of the identity that is repeated with each message, in characters.
const maxReminder = 500

// Reminder returns the beginning of the identity.
func (p Persona) Reminder() string { return plaintext.Cut(strings.TrimSpace(p.Identity), maxReminder) }

// Talk is the input for the context of a message in a conversation.
type Talk struct {
	Persona Persona
	// Actor names the person who writes.
	Actor string
	// At is the time of the message, in the time zone of the host.
	At time.Time
	// Host is the name of the host, and Project its default working directory.
	Host, Project string
	Facts         escalation.TalkFacts
	// Memories is the text about the memories that match the message, as Markdown; empty if there are none.
	Memories string
	// Cold reports that the session begins a new conversation.
	Cold bool
	// About is the chain whose last conversation the session continues; empty if the conversation is about no chain.
	About string
}

// TalkSystem returns the system prompt of a conversation. The argument brief describes what the session may do.
func (s *Set) TalkSystem(persona Persona, brief string) (string, error) {
	return join(struct {
		Persona

		Brief string
	}{persona, strings.ReplaceAll(strings.TrimSpace(brief), "your verdict",
		"your reply")}, s.builtIn.Lookup("talk-system.md"))
}

// TalkContext returns the text that precedes a message.
func (s *Set) TalkContext(talk Talk) (string, error) {
	facts := talk.Facts
	v := talkView{
		Reminder: talk.Persona.Reminder(), Actor: talk.Actor, Time: describeTime(talk.At), Host: talk.Host,
		Project: talk.Project, Memories: talk.Memories, About: talk.About, Cold: talk.Cold,
		Incidents: describeIncidents(facts.Incidents, escalation.TierObserve),
	}
	for _, gate := range facts.Gates {
		v.Gates = append(v.Gates, fmt.Sprintf("%s, since %s: %s", quote(gate.ChainID), minute(gate.At),
			quote(gate.Message)))
	}
	for i := range facts.Working {
		v.Working = append(v.Working, describeSession(&facts.Working[i]))
	}
	if talk.Cold {
		for i := range facts.Recent {
			v.Recent = append(v.Recent, describeSession(&facts.Recent[i]))
		}
		for i := range facts.Recalled {
			v.Recalled = append(v.Recalled, describeTurn(&facts.Recalled[i]))
		}
	}
	return join(v, s.builtIn.Lookup("talk.md"))
}

// TalkInterrupted returns the prompt that continues a turn after its process has died.
func (s *Set) TalkInterrupted(interruption Interruption) (string, error) {
	return join(interruption, s.builtIn.Lookup("talk-interrupted.md"))
}

// TalkRepair returns the prompt that asks for the structured reply again. It contains the reason why the reply is
// invalid.
func (s *Set) TalkRepair(reason string) (string, error) {
	return join(struct{ Reason string }{reason}, s.builtIn.Lookup("talk-repair.md"))
}

// talkView holds the values for the template of the context.
type talkView struct {
	Reminder, Actor, Time, Host, Project, About, Memories string

	Cold bool
	// The lists hold one line of Markdown for each entry.
	Incidents, Gates, Working, Recent, Recalled []string
}

// describeTime returns a time with the part of the day and the time zone.
func describeTime(at time.Time) string {
	return fmt.Sprintf("%s (%s)", at.Format("Monday 2006-01-02 15:04 MST (-07:00)"), escalation.TimeOfDay(at))
}

// describeSession describes a session of a chain in one line.
func describeSession(s *escalation.Session) string {
	result := string(s.Status)
	if s.Verdict != nil {
		result = fmt.Sprintf("%s, %s", s.Verdict.Status, quote(s.Verdict.Summary))
	}
	return fmt.Sprintf("%s, %s, %s, %s: %s", quote(s.ChainID), minute(s.StartedAt), s.Tier, names(s.Scope), result)
}

// maxRecalledText limits each text of an earlier turn, in characters.
const maxRecalledText = 200

// describeTurn describes an earlier turn in one line.
func describeTurn(turn *escalation.TalkTurn) string {
	short := func(text string) string { return quote(plaintext.Cut(plaintext.Compact(text), maxRecalledText)) }
	answer := "no answer"
	if turn.Reply != "" {
		answer = "you said " + short(turn.Reply)
	}
	return fmt.Sprintf("%s, %s wrote %s; %s", minute(turn.ReceivedAt), quote(turn.Actor), short(turn.Text), answer)
}
