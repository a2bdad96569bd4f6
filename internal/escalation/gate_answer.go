package escalation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/plaintext"
)

// MaxActor is how many characters the name of whoever answers may have.
const MaxActor = 200

// gateWords is how people spell the actions, in the order in which they are shown.
var gateWords = []struct {
	action GateAction
	words  []string
}{
	{GateContinue, []string{"c", "continue-session", "continue_session"}},
	{GateFix, []string{"f", "fix"}},
	{GateOverride, []string{"o", "override"}},
	{GateAbort, []string{"q", "abort"}},
}

// ParseGateReply reads what a person types at gate: the letter or the name of an action and, after a
// colon, guidance. The answer still lacks its actor. An action that the gate does not offer is an
// error that says why.
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

// Letter is the one key by which people choose the action; empty if a is none.
func (a GateAction) Letter() string {
	for _, known := range gateWords {
		if known.action == a {
			return known.words[0]
		}
	}
	return ""
}

// Validate reports the first thing that is wrong with the answer by itself, in one sentence.
func (a GateAnswer) Validate() error {
	switch {
	case blank(a.GateID):
		return errors.New("gate_id is empty: name the gate that you answer")
	case a.Action.Letter() == "":
		return fmt.Errorf("action %q is unknown: it must be continue_session, fix, override or abort", clipWord(string(a.Action)))
	}
	if err := CheckActor(a.Actor); err != nil {
		return err
	}
	return checkGuidance(a.Guidance)
}

// CheckActor reports what is wrong with the name of a person, in one sentence.
func CheckActor(actor string) error {
	switch {
	case blank(actor):
		return errors.New("actor is empty: say who you are")
	case utf8.RuneCountInString(actor) > MaxActor:
		return fmt.Errorf("actor has %d characters, and at most %d are allowed", utf8.RuneCountInString(actor), MaxActor)
	case !plaintext.IsLine(actor): // two names that look the same must be the same
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

// Check reports in one sentence why answer cannot close g; nil if it can.
func (g Gate) Check(answer GateAnswer) error {
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

// offers reports why g does not offer action; nil if it does.
func (g Gate) offers(action GateAction) error {
	switch {
	case action == GateContinue && g.Continuation == nil && g.NoContinuation != "":
		return fmt.Errorf("%s offers no %s: %s", g.ID, action, g.NoContinuation)
	case !slices.Contains(g.Options, action), action == GateContinue && g.Continuation == nil:
		return fmt.Errorf("%s offers no %s: choose %s", g.ID, action, g.spellOptions())
	}
	return nil
}

// spellOptions lists the letters that g takes, with their meaning.
func (g Gate) spellOptions() string {
	spelled := make([]string, 0, len(g.Options))
	for _, option := range g.Options {
		spelled = append(spelled, fmt.Sprintf("%s (%s)", option.Letter(), option))
	}
	return strings.Join(spelled, ", ")
}

// String says who closed the gate, and when.
func (c GateClosing) String() string {
	at := c.At.UTC().Format(time.RFC3339)
	switch {
	case c.Cancelled:
		return "the chain was cancelled at " + at
	case c.ToTier != 0:
		return fmt.Sprintf("a person asked for %s at %s", c.ToTier, at)
	case c.Actor == "":
		return fmt.Sprintf("nobody answered until %s, so it was %s", at, c.Action)
	default:
		return fmt.Sprintf("%s answered %s at %s", c.Actor, c.Action, at)
	}
}

// CheckMayAnswer reports in one sentence why actor may not answer at the gates of a chain that
// starter has started; nil if they may. Names are compared without regard to case and outer space:
// four eyes that one person passes by writing another letter large are two.
func (p GatePolicy) CheckMayAnswer(actor, starter string) error {
	same := func(other string) bool {
		return strings.EqualFold(strings.TrimSpace(actor), strings.TrimSpace(other))
	}
	switch {
	case len(p.Approvers) > 0 && !slices.ContainsFunc(p.Approvers, same):
		return fmt.Errorf("%s may not answer: CLAUDEOPS_GATE_APPROVERS does not list that name", actor)
	case p.FourEyes && same(starter):
		return fmt.Errorf("%s may not answer: whoever starts a chain cannot answer at its gates (CLAUDEOPS_GATE_FOUR_EYES)", actor)
	}
	return nil
}

// Restricts reports whether there are gates at which not everybody may answer.
func (p GatePolicy) Restricts() bool { return p.Timeout > 0 && (len(p.Approvers) > 0 || p.FourEyes) }

// clipWord keeps what somebody typed short enough for a sentence.
func clipWord(word string) string { return cut(word, 60) }
