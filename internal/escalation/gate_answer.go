package escalation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/escalation/calendar"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// MaxActor limits the name of the person who answers, in characters.
const MaxActor = 200

// gateWords lists the actions in the order of their display. An operator chooses an action by typing one of its words.
var gateWords = []struct {
	action GateAction
	words  []string
}{
	{GateContinue, []string{"c", "continue-session", "continue_session"}},
	{GateFix, []string{"f", "fix"}},
	{GateRecheck, []string{"l", "look-again", "look_again", "recheck"}},
	{GateOverride, []string{"o", "override"}},
	{GateAbort, []string{"q", "abort"}},
}

// ParseGateReply parses an operator's input at a gate. The input is the letter or name of an action. After the action,
// the input can contain a colon and guidance. The returned answer has no Actor. If the gate does not offer the action,
// the error gives the reason.
func ParseGateReply(gate Gate, text string) (GateAnswer, error) {
	word, guidance, _ := strings.Cut(strings.TrimSpace(text), ":")
	word = strings.ToLower(strings.TrimSpace(word))
	answer := GateAnswer{GateID: gate.ID, Guidance: strings.TrimSpace(guidance)}
	for _, known := range gateWords {
		if slices.Contains(known.words, word) {
			answer.Action = known.action
		}
	}
	if answer.Action == "" {
		return GateAnswer{}, fmt.Errorf("%q is no answer: type %s", clipWord(word), gate.spellOptions())
	}
	if err := gate.offers(answer.Action); err != nil {
		return GateAnswer{}, err
	}
	if err := checkGuidance(answer.Guidance); err != nil {
		return GateAnswer{}, err
	}
	return answer, nil
}

// Letter returns the key that chooses the action a; empty if a is not a valid action.
func (a GateAction) Letter() string {
	for _, known := range gateWords {
		if known.action == a {
			return known.words[0]
		}
	}
	return ""
}

// Validate checks the fields of the answer, but not whether they suit a gate. The error describes the first problem in
// a sentence.
func (a GateAnswer) Validate() error {
	switch {
	case blank(a.GateID):
		return errors.New("gate_id is empty: name the gate that you answer")
	case a.Action.Letter() == "":
		return fmt.Errorf("action %q is unknown: it must be continue_session, fix, recheck, override or abort",
			clipWord(string(a.Action)))
	}
	if err := CheckActor(a.Actor); err != nil {
		return err
	}
	return checkGuidance(a.Guidance)
}

// CheckActor returns an error if actor is not a valid name of a person. The error is one sentence.
func CheckActor(actor string) error {
	switch {
	case blank(actor):
		return errors.New("actor is empty: say who you are")
	case utf8.RuneCountInString(actor) > MaxActor:
		return fmt.Errorf("actor has %d characters, and at most %d are allowed", utf8.RuneCountInString(actor),
			MaxActor)
	case !plaintext.IsLine(actor): // invisible characters would make two different names look the same
		return errors.New("actor has characters that cannot be printed: give a plain name")
	}
	return nil
}

func checkGuidance(guidance string) error {
	if length := utf8.RuneCountInString(guidance); length > MaxGuidance {
		return fmt.Errorf("guidance has %d characters, and at most %d are allowed", length, MaxGuidance)
	}
	return nil
}

// Check returns nil if answer is permitted to close g. Otherwise the error gives the reason in one sentence.
func (g *Gate) Check(answer GateAnswer) error {
	if err := answer.Validate(); err != nil {
		return err
	}
	switch {
	case answer.GateID != g.ID:
		return fmt.Errorf("gate %q is not the one that is asked: it is %s", clipWord(answer.GateID), g.ID)
	case g.Answer != nil:
		return fmt.Errorf("%s is closed: %s", g.ID, g.Answer)
	}
	return g.offers(answer.Action)
}

// offers returns nil if g offers action. If not, the error gives the reason.
func (g *Gate) offers(action GateAction) error {
	switch {
	case action == GateContinue && g.Continuation == nil && g.NoContinuation != "":
		return fmt.Errorf("%s does not offer to %s: %s", g.ID, InWords(action), g.NoContinuation)
	case !slices.Contains(g.Options, action), action == GateContinue && g.Continuation == nil:
		return fmt.Errorf("%s does not offer to %s: choose %s", g.ID, InWords(action), g.spellOptions())
	}
	return nil
}

// spellOptions lists the letters of the actions that g offers, with their meaning.
func (g *Gate) spellOptions() string {
	spelled := make([]string, 0, len(g.Options))
	for _, option := range g.Options {
		spelled = append(spelled, fmt.Sprintf("%s (%s)", option.Letter(), InWords(option)))
	}
	return strings.Join(spelled, ", ")
}

// String says who closed the gate, and when.
func (c GateClosing) String() string {
	at := calendar.Clock(c.At, time.Time{})
	switch {
	case c.Cancelled:
		return "the chain was cancelled at " + at
	case c.ToTier != 0:
		return fmt.Sprintf("a person asked for %s at %s", c.ToTier, at)
	case c.Action == GateRecheck && c.Actor == "":
		return fmt.Sprintf("its incidents were found healed at %s", at)
	case c.Actor == "":
		return fmt.Sprintf("nobody answered until %s, so it was %s", at, InWords(c.Action))
	default:
		return fmt.Sprintf("%s answered %s at %s", c.Who(), InWords(c.Action), at)
	}
}

// Who returns the name of the person who answered, and whether it was verified; "" if nobody answered.
func (c GateClosing) Who() string { return named(c.Actor, c.Verified) }

// named marks a verified name.
func named(actor string, verified bool) string {
	if verified && actor != "" {
		return actor + " (verified)"
	}
	return actor
}

// CheckMayAnswer returns nil if the person who gives answer is permitted to answer at the gates of a chain that starter
// has started. Otherwise the error gives the reason in one sentence. If the policy requires verified names, a name that
// a client merely says counts for nothing. Names are compared case-insensitively and without surrounding space, so that
// changing the case cannot bypass four-eyes.
func (p GatePolicy) CheckMayAnswer(answer GateAnswer, starter string) error {
	actor := answer.Actor
	same := func(other string) bool {
		return strings.EqualFold(strings.TrimSpace(actor), strings.TrimSpace(other))
	}
	switch {
	case p.RequireVerified && !answer.Verified:
		return fmt.Errorf("%s may not answer here: answers need a login, so open the gate in the pages of `claudeops "+
			"web` or "+
			"`claudeops up` (CLAUDEOPS_GATE_REQUIRE_VERIFIED)", actor)
	case len(p.Approvers) > 0 && !slices.ContainsFunc(p.Approvers, same):
		return fmt.Errorf("%s may not answer: CLAUDEOPS_GATE_APPROVERS does not list that name", actor)
	case p.FourEyes && same(starter):
		return fmt.Errorf("%s may not answer: whoever starts a chain cannot answer at its gates "+
			"(CLAUDEOPS_GATE_FOUR_EYES)", actor)
	}
	return nil
}

// Restricts reports whether gates can open at which only some people are permitted to answer.
func (p GatePolicy) Restricts() bool {
	return p.Timeout > 0 && (len(p.Approvers) > 0 || p.FourEyes || p.RequireVerified)
}

// clipWord truncates an operator's input for use in a sentence.
func clipWord(word string) string { return cut(word, 60) }
