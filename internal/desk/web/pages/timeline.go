package pages

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/desk/operations"
	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/plaintext"
)

// timeline draws a chain: a lane for each tier, a lane for waits and a lane for gates. Positions are in percent of the
// width, so that the text keeps its size on a narrow screen.
type timeline struct {
	Lanes []lane
	// From and To are the ends of the time.
	From, To time.Time
	// Compressed reports that long times are drawn shorter than they are.
	Compressed bool
}

// Drawn reports whether there is something to draw.
func (t timeline) Drawn() bool { return t.To.After(t.From) }

// lane is one line of the timeline.
type lane struct {
	Name  string
	Bars  []bar
	Marks []mark
}

// bar is something that lasts.
type bar struct {
	X, Width float64
	// Tone is the class of the colour. Label is written into the bar if there is room. Text says the same and more.
	Tone, Label, Text string
	// Session is the number of the session; 0 if the bar is no session.
	Session int64
}

// mark is something that happens at one moment.
type mark struct {
	X          float64
	Tone, Text string
}

// span is a time that something lasts.
type span struct{ from, to time.Time }

// timelineOf draws a chain at the time now.
func timelineOf(s operations.Snapshot, now time.Time) timeline {
	chain := s.Chain
	end := cmp.Or(chain.EndedAt, now)
	if !s.Live && chain.EndedAt.IsZero() && len(chain.Events) > 0 {
		end = chain.Events[len(chain.Events)-1].At
	}
	line := timeline{From: chain.StartedAt, To: end}
	scale := newScale(line.From, line.To, spansOf(chain, end))
	line.Compressed = scale.compressed
	line.Lanes = sessionLanes(chain, scale, end)
	waits := waitLane(chain, scale, end)
	people := gateLane(chain, scale, end)
	for _, one := range []lane{waits, people} {
		if len(one.Bars)+len(one.Marks) > 0 {
			line.Lanes = append(line.Lanes, one)
		}
	}
	return line
}

// sessionLanes returns a lane for each tier or, if the chain works on a plan, for author and reviewer.
func sessionLanes(chain escalation.Chain, scale scale, end time.Time) []lane {
	if chain.Plan != nil {
		return []lane{
			sessionLane("Author", chain, scale, end,
				func(s *escalation.Session) bool { return s.Purpose != escalation.PurposeReview }),
			sessionLane("Review", chain, scale, end,
				func(s *escalation.Session) bool { return s.Purpose == escalation.PurposeReview }),
		}
	}
	var lanes []lane
	highest := max(chain.MaxTier, chain.Tier())
	for _, tier := range escalation.Tiers() {
		if tier <= highest {
			name := fmt.Sprintf("Tier %d", int(tier))
			lanes = append(lanes, sessionLane(name, chain, scale, end,
				func(s *escalation.Session) bool { return s.Tier == tier }))
		}
	}
	return lanes
}

// sessionLane returns a lane with the sessions for which in returns true.
func sessionLane(
	name string, chain escalation.Chain, scale scale, end time.Time, in func(*escalation.Session) bool,
) lane {
	own := lane{Name: name}
	for i := range chain.Sessions {
		session := &chain.Sessions[i]
		if !in(session) {
			continue
		}
		label := fmt.Sprintf("#%d", session.ID)
		if session.Attempts > 1 {
			label += fmt.Sprintf(" ×%d", session.Attempts)
		}
		text := fmt.Sprintf("Session #%d, ", session.ID)
		if task := operations.SessionTask(session); task != "" {
			text += task + ", "
		}
		text += fmt.Sprintf("%s, %s, %s", session.Model, escalation.InWords(session.Status),
			operations.SessionCost(session))
		if session.Attempts > 1 {
			text += ", " + plaintext.Count(session.Attempts, "attempt")
		}
		drawn := scale.bar(span{session.StartedAt, sessionEnd(session, end)})
		drawn.Tone, drawn.Label, drawn.Text, drawn.Session = tone(session.Status), label, text, session.ID
		own.Bars = append(own.Bars, drawn)
	}
	return own
}

// sessionEnd returns the end of a session; end if it runs.
func sessionEnd(session *escalation.Session, end time.Time) time.Time {
	switch {
	case !session.EndedAt.IsZero():
		return session.EndedAt
	case session.Status == escalation.SessionRunning:
		return end
	}
	return session.StartedAt.Add(time.Duration(session.DurationMS) * time.Millisecond)
}

// waitLane draws the waits for limits, which the events describe.
func waitLane(chain escalation.Chain, scale scale, end time.Time) lane {
	own := lane{Name: "Waits"}
	for _, wait := range waitsOf(chain, end) {
		drawn := scale.bar(wait.span)
		drawn.Tone, drawn.Label, drawn.Text = "warn", "waits", "Waited: "+wait.reason
		own.Bars = append(own.Bars, drawn)
	}
	return own
}

// wait is a wait for a limit.
type wait struct {
	span
	reason string
}

func waitsOf(chain escalation.Chain, end time.Time) []wait {
	var waits []wait
	open := false
	for _, event := range chain.Events {
		switch event.Kind { //nolint:exhaustive // the other kinds do not begin or end a wait
		case escalation.EventWaitStarted:
			waits, open = append(waits, wait{span{event.At, end}, event.Message}), true
		case escalation.EventWaitEnded:
			if open {
				waits[len(waits)-1].to, open = event.At, false
			}
		}
	}
	if len(waits) == 0 && chain.Wait != nil {
		waits = append(waits, wait{span{chain.Wait.Since, end}, chain.Wait.Reason})
	}
	return waits
}

// gateLane draws the gates, and what people were told and could not be told.
func gateLane(chain escalation.Chain, scale scale, end time.Time) lane {
	own := lane{Name: "People"}
	for _, gate := range chain.Gates {
		drawn := scale.bar(span{gate.OpenedAt, gateEnd(gate, end)})
		drawn.Tone, drawn.Label, drawn.Text = "gate", gate.ID, gate.ID+": "+gate.Reason
		if gate.Answer != nil {
			drawn.Text += " (" + gate.Answer.String() + ")"
		}
		own.Bars = append(own.Bars, drawn)
	}
	for _, event := range chain.Events {
		tones := map[escalation.EventKind]string{
			escalation.EventGateOpened: "note", escalation.EventGateReminder: "note",
			escalation.EventNotNotified: "bad", escalation.EventNotified: "note", escalation.EventSignal: "note",
		}
		if class, marked := tones[event.Kind]; marked {
			own.Marks = append(own.Marks, mark{scale.at(event.At), class, event.Message})
		}
	}
	return own
}

func gateEnd(gate escalation.Gate, end time.Time) time.Time {
	if gate.Answer != nil {
		return gate.Answer.At
	}
	return end
}

// spansOf returns all times that the timeline draws.
func spansOf(chain escalation.Chain, end time.Time) []span {
	var spans []span
	for i := range chain.Sessions {
		spans = append(spans, span{chain.Sessions[i].StartedAt, sessionEnd(&chain.Sessions[i], end)})
	}
	for _, wait := range waitsOf(chain, end) {
		spans = append(spans, wait.span)
	}
	for _, gate := range chain.Gates {
		spans = append(spans, span{gate.OpenedAt, gateEnd(gate, end)})
	}
	return spans
}

// scale converts times to positions. A session takes seconds or minutes, and a wait for a person days. So the scale
// gives a time between two boundaries not its length, but a width that grows with the square root of the length.
type scale struct {
	bounds []time.Time
	// widths[i] is the position of bounds[i], in percent.
	widths     []float64
	compressed bool
}

// minWidth is the smallest width of a bar, in percent.
const minWidth = 1.2

func newScale(from, to time.Time, spans []span) scale {
	bounds := []time.Time{from, to}
	for _, span := range spans {
		bounds = append(bounds, span.from, span.to)
	}
	bounds = slices.DeleteFunc(bounds, func(t time.Time) bool { return t.Before(from) || t.After(to) })
	slices.SortFunc(bounds, time.Time.Compare)
	bounds = slices.CompactFunc(bounds, time.Time.Equal)
	s := scale{bounds: bounds, widths: make([]float64, len(bounds))}
	shortest, longest := math.Inf(1), 0.0
	for i := 1; i < len(bounds); i++ {
		length := bounds[i].Sub(bounds[i-1]).Seconds()
		shortest, longest = min(shortest, length), max(longest, length)
		s.widths[i] = s.widths[i-1] + math.Sqrt(length)
	}
	s.compressed = longest > 2*shortest
	if total := s.widths[len(s.widths)-1]; total > 0 {
		for i := range s.widths {
			s.widths[i] *= 100 / total
		}
	}
	return s
}

// at returns the position of a time, in percent.
func (s scale) at(t time.Time) float64 {
	i, found := slices.BinarySearchFunc(s.bounds, t, time.Time.Compare)
	switch {
	case found:
		return s.widths[i]
	case i == 0:
		return 0
	case i == len(s.bounds):
		return 100
	}
	part := t.Sub(s.bounds[i-1]).Seconds() / s.bounds[i].Sub(s.bounds[i-1]).Seconds()
	return s.widths[i-1] + part*(s.widths[i]-s.widths[i-1])
}

func (s scale) bar(of span) bar {
	x := min(s.at(of.from), 100-minWidth)
	return bar{X: x, Width: max(s.at(of.to)-x, minWidth)}
}
