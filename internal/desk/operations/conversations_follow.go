package operations

import (
	"context"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
)

// TalkEvent is news about a turn that somebody follows.
type TalkEvent struct {
	Kind TalkEventKind `json:"kind"`
	// Ahead is the number of turns that come first, for TalkWaits.
	Ahead int `json:"ahead,omitempty"`
	// Doing says in one line what the session does, for TalkWorks. It can contain words of the agent.
	Doing string `json:"doing,omitempty"`
	// CostUSD is the estimated cost so far in US dollars, for TalkWorks.
	CostUSD float64 `json:"cost_usd,omitempty"`
	// Text is the next part of the reply, for TalkText. If Again is set, the session has begun its reply anew: Text
	// replaces all parts before it. The reply in Turn counts, whatever the parts were.
	Text  string `json:"text,omitempty"`
	Again bool   `json:"again,omitempty"`
	// Turn is the turn that has ended, for TalkEnded, and nil for other kinds.
	Turn *escalation.TalkTurn `json:"turn,omitempty"`
}

// TalkEventKind is the kind of a TalkEvent.
type TalkEventKind string

// The kinds. TalkEnded is the last event.
const (
	TalkWaits  TalkEventKind = "waits"  // other turns come first
	TalkWorks  TalkEventKind = "works"  // the session does something else
	TalkText   TalkEventKind = "text"   // the reply has become longer
	TalkNobody TalkEventKind = "nobody" // no worker answers
	TalkEnded  TalkEventKind = "ended"  // the turn has ended
)

const (
	// nearWait and farWait are the times between two looks for the end of a turn in the records, for a Temporal of this
	// host and another.
	nearWait, farWait = 250 * time.Millisecond, time.Second
	// lookEvery is the time between two questions whether the conversation of an open turn still runs.
	lookEvery = 10 * time.Second
	// unreadableFor is the time after which Follow gives up if the records cannot be read.
	unreadableFor = time.Minute
)

// Follow reports what happens in a turn until it has ended, and returns the turn as Wait does. The function see gets
// each event; if it returns an error, Follow returns that error, and the turn continues. If see is nil, Follow only
// waits. The parts of the reply come with the heartbeats of its session, up to their limit, and with secrets masked.
// What a heartbeat does not have comes with the end.
func (c Conversations) Follow(
	ctx context.Context, name string, turn int, see func(TalkEvent) error,
) (escalation.TalkTurn, error) {
	none := escalation.TalkTurn{}
	records, err := c.recordsOf(ctx, name)
	if err != nil {
		return none, err
	}
	connection, _, err := c.connect(ctx)
	if err != nil {
		return none, err
	}
	now := time.Now()
	f := follow{
		Conversations: c, connection: connection, records: records, name: name, turn: turn, see: see,
		read: now, looked: now, reported: now,
	}
	pause := farWait
	if connection.Local {
		pause = nearWait
	}
	for {
		if found, ended, err := f.look(ctx); ended || err != nil {
			return found, err
		}
		if err := f.report(ctx); err != nil {
			return none, err
		}
		select {
		case <-ctx.Done():
			return none, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// follow is one call of Follow.
type follow struct {
	Conversations

	connection Connection
	records    *store.Store
	name       string
	turn       int
	see        func(TalkEvent) error
	seen       turnEvents
	// read is the time at which the turn was last read from the records, looked that of the last question whether its
	// conversation runs, and reported that of the last events.
	read, looked, reported time.Time
}

// look looks for the end of the turn in the records, and from time to time for the end of its conversation. It reports
// and returns a turn that has ended. An error ends Follow, too.
func (f *follow) look(ctx context.Context) (found escalation.TalkTurn, ended bool, err error) {
	found, err = readTurn(ctx, f.records, f.name, f.turn)
	switch {
	case ctx.Err() != nil:
		return escalation.TalkTurn{}, false, ctx.Err()
	case KindOf(err) == KindNotFound, err != nil && time.Since(f.read) > unreadableFor:
		return escalation.TalkTurn{}, false, err
	case err != nil:
		return escalation.TalkTurn{}, false, nil //nolint:nilerr // it is read again
	case found.State.Final():
		found.Context = ""
		found = f.maskedTurn(found)
		if f.see != nil {
			err = f.see(TalkEvent{Kind: TalkEnded, Turn: &found})
		}
		return found, true, err
	}
	f.read = time.Now()
	if time.Since(f.looked) > lookEvery {
		err = f.ended(ctx, f.connection, f.records, f.name, f.turn)
		f.looked = time.Now()
	}
	return escalation.TalkTurn{}, false, err
}

// report reports from time to time what happens in the turn.
func (f *follow) report(ctx context.Context) error {
	if f.see == nil || time.Since(f.reported) <= (Follower{Local: f.connection.Local}).interval() {
		return nil
	}
	now, err := f.Get(ctx, f.name)
	for _, event := range f.seen.next(now, err, f.turn) {
		if err := f.see(event); err != nil {
			return err
		}
	}
	f.reported = time.Now()
	return nil
}

// ended returns an error if the conversation of an open turn was ended, so that nobody answers the turn.
func (c Conversations) ended(
	ctx context.Context, connection Connection, records *store.Store, name string, turn int,
) error {
	err := c.describe(ctx, connection, name)
	if kind := KindOf(err); kind != KindConflict && kind != KindNotFound {
		return nil // it runs, or Temporal is away
	}
	if found, late := readTurn(ctx, records, name, turn); late != nil || found.State.Final() {
		return nil //nolint:nilerr // its end was recorded meanwhile, or will be told by the next look
	}
	return err
}

// turnEvents turns looks at a conversation into the events of a turn.
type turnEvents struct {
	// last is the latest event that was not a part of the reply, and text the reply as it was reported.
	last TalkEvent
	text string
}

// next returns the events since the look before. The argument err is the error of the look.
func (e *turnEvents) next(now LiveConversation, err error, turn int) (events []TalkEvent) {
	state, ahead := stateOf(now, turn)
	switch {
	case err != nil:
		return e.changed(TalkEvent{Kind: TalkNobody})
	case state == escalation.TalkWaiting:
		return e.changed(TalkEvent{Kind: TalkWaits, Ahead: ahead})
	case state != escalation.TalkRunning:
		return nil // the end follows
	}
	work := TalkEvent{Kind: TalkWorks, Doing: now.Doing()}
	var text string
	if now.Progress != nil {
		text = now.Progress.Now.Text
		work.CostUSD = now.Progress.Total().CostUSD
	}
	switch part, more := strings.CutPrefix(text, e.text); {
	case text == "":
		return e.changed(work)
	case more && part == "":
		return nil
	case more:
		e.text = text
		return []TalkEvent{{Kind: TalkText, Text: part}}
	default:
		e.text = text
		return []TalkEvent{{Kind: TalkText, Text: text, Again: true}}
	}
}

// changed returns the event, unless it is the same as the one before.
func (e *turnEvents) changed(event TalkEvent) []TalkEvent {
	if event == e.last {
		return nil
	}
	e.last = event
	return []TalkEvent{event}
}

// stateOf returns the state of a turn, and the number of turns that come first; an empty state if the turn is not shown
// any more.
func stateOf(now LiveConversation, turn int) (state escalation.TalkState, ahead int) {
	for _, shown := range now.Turns {
		if shown.Turn == turn {
			return shown.State, ahead
		}
		if !shown.State.Final() {
			ahead++
		}
	}
	return "", ahead
}
